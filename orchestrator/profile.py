"""Running a profile: one slice, the arm's engines one after another, and what they come to."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jobs.nouns import counted
from jobs.profile.estimate import LABEL, arm_estimate, baseline_estimate
from jobs.profile.parts import MOST_INFLATION, MOST_REST, REST, Breakdown, of_arm, of_baseline
from jobs.profile.runner import ProfileRunner
from jobs.profile.task import EngineProfile, ProfileFailed, ProfileReady, ProfileReport, ProfileTask
from orchestrator.errors import ConfigError, ProfileFailedError
from orchestrator.interrupts import Interrupts
from orchestrator.placed import ProcessLostError, placed_reports
from orchestrator.placement import Demand
from orchestrator.plan import Plan
from orchestrator.profile_plan import ProfilePlan, differ_in_k_only

TRACE = "trace"
ESTIMATE = "estimate"
MOST_SECONDS = 600.0
"""Longest wait for a window of steps, unless the sweep's own patience with a cell is shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """One engine's step, with where it goes."""

    engine: EngineProfile
    breakdown: Breakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileResult:
    """What a profile came to."""

    source: str
    """`trace` or `estimate`."""
    engines: tuple[Profiled, ...]
    """The baseline, and the arms."""
    others: tuple[EngineProfile, ...]
    """Arms with another draft length, which an estimate needed."""
    notes: tuple[str, ...]
    """What a reader must know."""


def run_profile(plan: Plan, profile: ProfilePlan, *, say: Callable[[str], None]) -> ProfileResult:
    """Run the engines of a profile and return what they show.

    Raises:
        ConfigError: the engine does not hold so many requests at this context.
        ProfileFailedError: an engine or the process failed.
        PlacementError: the cluster can never hold the arm.
    """
    found: list[EngineProfile] = []
    with Interrupts():
        for report in _reports(plan, profile, say=say):
            if isinstance(report, ProfileReady):
                say(f"{report.label}: ready in {report.seconds:.1f} s")
            elif isinstance(report, EngineProfile):
                found.append(report)
                say(_line(report))
            else:
                raise _failure(report)
    return result_of(profile, found)


def result_of(profile: ProfilePlan, found: Sequence[EngineProfile]) -> ProfileResult:
    """Return what the engines' figures come to, with what a reader must know of them."""
    shown = 1 + sum(not arm.is_baseline for arm in profile.arms)
    of_config = dict(zip((config.digest for config in profile.configs), profile.configs, strict=True))
    engines = []
    for engine in found[:shown]:
        config = of_config[engine.arm]
        others = [entry for entry in found if differ_in_k_only(config, of_config[entry.arm])]
        breakdown = _traced(engine, found[0]) if profile.traced else _estimated(engine, found[0], others)
        engines.append(Profiled(engine=engine, breakdown=breakdown))
    notes = [] if profile.traced else [f"{LABEL}: no trace was taken"]
    notes += profile.notes
    for entry in engines:
        notes += [f"{entry.engine.label}: {note}" for note in (*entry.breakdown.notes, *_doubts(entry))]
    return ProfileResult(
        source=TRACE if profile.traced else ESTIMATE,
        engines=tuple(engines),
        others=tuple(found[shown:]),
        notes=tuple(notes),
    )


def _traced(engine: EngineProfile, baseline: EngineProfile) -> Breakdown:
    assert engine.traced is not None, "a traced profile has a trace"
    assert baseline.traced is not None, "a traced profile has a trace"
    return of_baseline(engine.traced) if engine is baseline else of_arm(engine.traced, baseline.traced)


def _estimated(engine: EngineProfile, baseline: EngineProfile, others: Sequence[EngineProfile]) -> Breakdown:
    if engine is baseline:
        return baseline_estimate(baseline)
    # the draft length farthest away has the surest slope
    other = max(others, key=lambda entry: abs(entry.k - engine.k), default=None)
    return arm_estimate(engine, baseline, other)


def _doubts(profiled: Profiled) -> list[str]:
    """Return why a breakdown is to be read with care."""
    found = []
    rest = profiled.breakdown.ms(REST) / profiled.breakdown.step_ms
    if rest > MOST_REST:
        found.append(f"{rest:.0%} of the step belong to no part, more than {MOST_REST:.0%}")
    engine = profiled.engine
    if engine.spread > MOST_INFLATION:
        slowest = engine.step_ms * (1.0 + engine.spread)
        found.append(
            f"its step took {engine.step_ms:.2f} to {slowest:.2f} ms without a profiler: the machine was not "
            f"quiet. The fastest of {counted(len(engine.windows[0]), 'window')} counts"
        )
    longer = profiled.engine.inflation
    if longer is not None and abs(longer) > MOST_INFLATION:
        found.append(
            f"its traced step differs by {longer:+.0%} from the same step without the profiler, "
            f"more than {MOST_INFLATION:.0%}: its shares are distorted; larger batches have less of it"
        )
    traced = profiled.engine.traced
    k = profiled.engine.k
    if traced is not None and k and traced.positions < k + 0.95:
        found.append(
            f"a step verified {traced.positions:.2f} positions a request, not K + 1 = {k + 1}: the "
            "drafter had not always something to propose"
        )
    return found


def _reports(plan: Plan, profile: ProfilePlan, *, say: Callable[[str], None]) -> Iterator[ProfileReport]:
    devices = profile.arms[0].layout.devices

    def task(demand: Demand) -> ProfileTask:
        return ProfileTask(
            configs=profile.configs,
            prompts=profile.prompts,
            contexts=profile.contexts,
            steps=profile.steps,
            repeats=profile.repeats,
            traced=profile.traced,
            devices=devices,
            engine_cores=demand.engine_cores,
            load_cores=demand.load_cores,
            resource=plan.cluster.resource,
            seed=plan.seed,
            ready_seconds=plan.timeouts.ready,
            stop_seconds=plan.timeouts.stop,
            patience=min(MOST_SECONDS, plan.timeouts.cell),
        )

    name = f"profile-{profile.arms[0].digest[:10]}"
    try:
        yield from placed_reports(plan.cluster, devices, ProfileRunner, task, name=name, say=say)
    except ProcessLostError as error:
        message = f"the profile's process was lost ({error}); run the same command again"
        raise ProfileFailedError(message) from error


def _failure(report: ProfileFailed) -> Exception:
    if report.fixable:
        return ConfigError(report.message)
    tail = f"; last lines of the engine's log: {report.log_tail[-2000:]}" if report.log_tail else ""
    return ProfileFailedError(f"the profile stopped: {report.message}{tail}")


def _line(report: EngineProfile) -> str:
    first = report.timed[0]
    traced = report.traced
    said = f"{report.label}: {first.steps:.0f} steps of {first.step_ms:.2f} ms at {first.context:.0f} tokens"
    return said if traced is None else f"{said}; {traced.steps} traced, {traced.step_ms:.2f} ms each"
