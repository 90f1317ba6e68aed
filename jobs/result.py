"""The result schema: what one cell leaves behind. `analysis` reads this and nothing else of `jobs`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from jobs.load import axis_and_value, level_label
from jobs.result_form import check_form, whole

SCHEMA = 1

MEASURED = "measured"
INVALID = "invalid"
FAILED = "failed"
INFEASIBLE = "infeasible"
OUTCOMES = (MEASURED, INVALID, FAILED, INFEASIBLE)

OPENING = "opening"
CLOSING = "closing"
TREATMENT = "treatment"
ROLES = (OPENING, CLOSING, TREATMENT)

PLANNED = "planned"
SEARCH = "search"
CONFIRMATION = "confirmation"
KINDS = (PLANNED, SEARCH, CONFIRMATION)
"""Why a block was measured: as planned at first, to find where a curve crosses, or to see a winner win again.
Confirmations are judged by themselves and count nowhere else: what picked the winner flatters it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One check that a measurement has to pass."""

    name: str
    passed: bool | None
    """None: it could not be checked, as what it needs is not told here."""
    message: str
    """What was found against what is allowed, with the numbers."""
    value: float | None = None
    limit: float | None = None

    @property
    def failed(self) -> bool:
        """Whether what was found is not allowed; a gate that could not be checked has not failed."""
        return self.passed is False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """One arm at one load level in one segment of a block: its outcome, and measurement if there is one."""

    cell: str
    """Id, and name of the cell's folder in the results."""
    arm: str
    """Digest of the arm."""
    arm_label: str
    """`tp1/ngram-k3`: layout, drafter, K."""
    layout: str
    """Layout label: the pair's baseline is the arm without a drafter of the same layout."""
    drafter: str
    """Drafter method, `none` for the baseline."""
    k: int
    concurrency: int | None = None
    """C of a closed loop. Exactly one of this and the next two is set."""
    rate: float | None = None
    """Conversations a second of an open loop."""
    rate_scale: float | None = None
    """An open loop's arrival rate over the trace's own."""
    block: int
    segment: int
    """Uninterrupted stretch of a block, from 0; pairs never cross segments."""
    round: int = 0
    """0 is what was planned at first; later rounds were appended for what the first ones showed."""
    kind: str = PLANNED
    """One of `KINDS`: why its block was measured."""
    role: str
    """`opening`, `closing` (the two baselines of a segment) or `treatment`."""
    outcome: str
    """One of `OUTCOMES`."""
    emulated: bool
    """Whether an emulated engine made the figures."""
    synthetic: bool = False
    """Whether acceptance was forced."""
    counterfactual: str = ""
    """`kv_matched` (a baseline with a drafter's KV cache) or `loaded_only` (a drafter that is never asked):
    an engine nobody would serve with. Empty for all others."""
    oversubscribed: bool = False
    """Whether client and engine had to share a core: measured, but never a verdict."""
    devices: int = 1
    """Devices of the block's slice, replicas included."""
    replicas: int = 1
    factors: Mapping[str, str] = field(default_factory=dict)
    """Every swept key with this cell's value."""
    cause: str | None = None
    """Why it is not `measured`, as a stable word: a gate's name, an error's cause, a rule."""
    reason: str | None = None
    """The same for people."""
    log_tail: str = ""
    """Last lines of the engine's log, for failures."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Figures by slash-grouped name; `jobs/measurement.py` defines each. None: the source was absent."""
    gates: tuple[Gate, ...] = ()
    caveats: tuple[str, ...] = ()
    identity: Mapping[str, Any] = field(default_factory=dict)
    """Engine version, resolved configuration, argv, host, devices, workload digest, order digest, seeds."""
    sequence: int = 0
    """Place in the order in which the driver recorded the cells of its sweep, from 1; 0: not recorded yet."""
    started: str = ""
    """UTC time, ISO 8601; a label, which a clock that jumps can put before an earlier cell's."""
    seconds: float = 0.0
    """Wall seconds of the cell, warm-up included."""
    start_seconds: float | None = None
    """Seconds the engine took to become ready, on the first cell of an arm's engine."""
    schema: int = SCHEMA

    @property
    def counts(self) -> bool:
        """Whether analyses count it: not what was measured only to confirm a winner."""
        return self.kind != CONFIRMATION

    @property
    def axis(self) -> str:
        """What the load level is a number of: `concurrency`, `rate` or `rate_scale`."""
        return self._number[0]

    @property
    def level(self) -> float:
        """The load level's number on its axis."""
        return self._number[1]

    @property
    def load(self) -> str:
        """The load level's short name: `c16`, `r2.5`, `x1.5`."""
        return level_label(*self._number)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)

    @property
    def _number(self) -> tuple[str, float]:
        return axis_and_value(concurrency=self.concurrency, rate=self.rate, rate_scale=self.rate_scale)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`'s form.

        Raises:
            ValueError: another schema version, or a value that no cell has.
            TypeError: a field that is missing, or that no cell has.
        """
        check_form(data, {"outcome": OUTCOMES, "role": ROLES, "kind": KINDS})
        if data.get("schema") != SCHEMA:
            message = f"cell result has schema {data.get('schema')!r}; this version reads {SCHEMA}"
            raise ValueError(message)
        data = {name: value if name == "metrics" else whole(value) for name, value in data.items()}
        gates = tuple(Gate(**gate) for gate in data.get("gates", ()))
        result = cls(**{**data, "gates": gates, "caveats": tuple(data.get("caveats", ()))})
        if not result.level > 0.0:
            message = f"its load level is {result.level:g}"
            raise ValueError(message)
        return result
