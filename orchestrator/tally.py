"""The state of a sweep as its reports tell it: what is done, what runs, what is left, and for how long."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from jobs.result import CellResult
from jobs.task import StepStarted
from orchestrator.counts import Counts
from orchestrator.lock import Owner
from orchestrator.pace import Pace
from orchestrator.pairs_so_far import PairsSoFar
from orchestrator.pending import Segment
from orchestrator.plan import Plan, Run
from orchestrator.standing import PoolSnapshot
from orchestrator.status import PairSoFar, RunningStep, Status
from orchestrator.time_left import Work, seconds_left

PAIRS = 5
"""Pairs that are shown."""
NOTES = 5
"""Notes that are shown."""
LOOK_SECONDS = 5.0
"""The rest is scheduled anew so often; in between its end stays where it was."""

_Key = tuple[int, int]
"""Block and segment."""


@dataclass(slots=True, kw_only=True)
class _Todo:
    """A segment that was not over when last heard of."""

    segment: Segment
    done: set[tuple[str, str, str]] = field(default_factory=set)
    """Arm, role and load label of the cells that have their outcome."""
    ready: str = ""
    """Arm whose engine is up."""
    step: StepStarted | None = None
    since: float = 0.0
    """When the step began (`clock`)."""

    @property
    def left(self) -> int:
        """Cells of the segment without an outcome."""
        return self.segment.cells - len(self.done)


class Tally:
    """Takes what a driver hears and tells the `Status`. Its caller sees to it that one thread is in it."""

    def __init__(
        self,
        plan: Plan,
        known: Iterable[CellResult],
        *,
        count: Callable[[], Counts],
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin.

        Args:
            plan: the sweep.
            known: cells that earlier runs recorded.
            count: counts the cells that are recorded, and those that would be left if nothing ran any more;
                it is asked when something has changed, by whom it was told.
            pace: how long starts and cells take; its owner lets it learn.
            clock: seconds.
        """
        self._plan = plan
        self._clock = clock
        self._begun = clock()
        self._owner = Owner.me()
        self._labels = {arm.digest: arm.label for arm in plan.arms}
        self._stateful = frozenset(plan.stateful)
        self._pace = pace
        self._count = count
        self._counts = count()
        self._todo: dict[_Key, _Todo] = {}
        self._pairs_so_far = PairsSoFar(plan.objective)
        self._pairs: deque[PairSoFar] = deque(maxlen=PAIRS)
        self._notes: deque[str] = deque(maxlen=NOTES)
        self._end: float | None = None
        """Expected end (`clock`)."""
        self._looked = -LOOK_SECONDS
        for result in known:
            self._take_pairs(result)

    @property
    def left(self) -> int:
        """Cells that are left: of a segment that is expected its own rest, else what would run anew."""
        expected = {block: todo.left for (block, _), todo in self._todo.items()}
        return sum({**self._counts.left_in, **expected}.values())

    def expect(self, segments: Sequence[Segment]) -> None:
        """Take what is to run now, none at the end; what other blocks left undone stays left."""
        self._todo = {(segment.block.index, segment.index): _Todo(segment=segment) for segment in segments}
        self._counts = self._count()
        self._looked = -LOOK_SECONDS

    def step(self, report: StepStarted) -> None:
        """Take the beginning of an engine start or a cell."""
        todo = self._todo.get((report.block, report.segment))
        if todo is not None:
            todo.step, todo.since = report, self._clock()
            todo.ready = report.arm if report.cell is not None else ""

    def cell(self, result: CellResult) -> list[PairSoFar]:
        """Take a cell's outcome and return the pairs that it finishes."""
        self._counts = self._count()
        todo = self._todo.get((result.block, result.segment))
        if todo is not None:
            todo.done.add((result.arm, result.role, result.load))
            todo.step = None
        return self._take_pairs(result)

    def _take_pairs(self, result: CellResult) -> list[PairSoFar]:
        pairs = self._pairs_so_far.take(result, self.label(result))
        self._pairs.extendleft(pairs)
        return pairs

    def ended(self, segment: Segment) -> None:
        """Take the end of a block's process; what it left undone is left until it is expected again."""
        self._counts = self._count()
        self._todo.pop((segment.block.index, segment.index), None)

    def note(self, text: str) -> None:
        """Keep a sentence about the cluster or a lost block."""
        self._notes.append(text)

    def label(self, result: CellResult) -> str:
        """Return the label of a cell's arm; an infeasible one is no arm of the plan."""
        return self._labels.get(result.arm, result.arm_label)

    def status(self, state: str, pool: PoolSnapshot | None) -> Status:
        """Return the state of the sweep.

        Args:
            state: `running`, `finished` or `stopped`.
            pool: what runs where; None before the cluster is known, and at the end.
        """
        now = self._clock()
        counts = self._counts
        return Status(
            sweep=self._plan.sweep,
            state=state,
            measured=counts.measured,
            invalid=counts.invalid,
            failed=counts.failed,
            infeasible=counts.infeasible,
            causes=counts.causes,
            left=self.left,
            left_if_stopped=counts.left,
            running=() if pool is None else self._running(pool, now),
            waiting=0 if pool is None else pool.waiting,
            resource=self._plan.cluster.resource,
            devices_in_use=0 if pool is None else pool.devices_in_use,
            devices_held=0 if pool is None else pool.devices_held,
            devices_total=0 if pool is None else pool.devices_total,
            seconds=now - self._begun,
            seconds_left=self.seconds_left(pool),
            pairs=tuple(self._pairs),
            notes=tuple(self._notes),
            owner=self._owner,
            heartbeat=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def seconds_left(self, pool: PoolSnapshot | None) -> float | None:
        """Return how long the rest is expected to take; None until a start and a cell were timed."""
        now = self._clock()
        end = None if pool is None else self._expected_end(pool, now)
        return None if end is None else max(0.0, end - now)

    def _running(self, pool: PoolSnapshot, now: float) -> tuple[RunningStep, ...]:
        steps = []
        for block in sorted(pool.running, key=lambda block: block.block):
            todo = self._todo.get((block.block, block.segment))
            step = None if todo is None else todo.step
            steps.append(
                RunningStep(
                    block=block.block,
                    segment=block.segment,
                    node=block.node,
                    devices=block.devices,
                    arm="" if step is None else self._labels[step.arm],
                    role="" if step is None else step.role,
                    load="" if step is None else step.load,
                    seconds=now - (todo.since if todo is not None and step is not None else block.since),
                )
            )
        return tuple(steps)

    def _expected_end(self, pool: PoolSnapshot, now: float) -> float | None:
        """Return when the sweep is expected to end (`clock`)."""
        if now - self._looked < LOOK_SECONDS:
            return self._end
        self._looked = now
        runs = {(block.block, block.segment) for block in pool.running}
        running: list[Work] = []
        waiting: list[Work] = []
        for key, todo in self._todo.items():
            seconds = self._seconds(todo, now)
            if seconds is None:
                self._end = None
                return None
            work = Work(devices=todo.segment.block.devices, seconds=seconds)
            (running if key in runs else waiting).append(work)
        devices = max(1, pool.devices_total - pool.devices_held)
        self._end = now + seconds_left(running, waiting, devices=devices)
        return self._end

    def _seconds(self, todo: _Todo, now: float) -> float | None:
        """Return what is left of a segment; None while unknown."""
        if not todo.done and todo.step is None:
            return self._pace.seconds(todo.segment)
        total = 0.0
        for run in todo.segment.runs:
            levels = tuple(level for level in run.levels if (run.arm, run.role, level.label) not in todo.done)
            if not levels:
                continue
            seconds = self._pace.run_seconds(Run(arm=run.arm, role=run.role, levels=levels))
            start = self._pace.start_seconds(run.arm)
            if seconds is None or start is None:
                return None
            begun = len(levels) < len(run.levels) or self._is_up(todo, run)
            total += seconds - (start if begun and run.arm not in self._stateful else 0.0)
        return max(0.0, total - self._spent(todo, now))

    @staticmethod
    def _is_up(todo: _Todo, run: Run) -> bool:
        return todo.step is not None and todo.step.role == run.role and todo.ready == run.arm

    def _spent(self, todo: _Todo, now: float) -> float:
        """Return how much of the present step is over, of what was expected of it."""
        if todo.step is None:
            return 0.0
        step = todo.step
        expected = (
            self._pace.start_seconds(step.arm)
            if step.cell is None
            else self._pace.cell_seconds(step.arm, step.load)
        )
        return min(now - todo.since, expected or 0.0)
