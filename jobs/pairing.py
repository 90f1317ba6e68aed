"""The opening baselines of a segment: what its other cells are held against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engines.spec import EngineConfig
from jobs.gates.pair import Delivered, pair_gates
from jobs.load import LoadLevel
from jobs.measures.overlap import Turn, turn_overlap
from jobs.result import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a pair's other side is held against."""

    resolved: Mapping[str, Any]
    """The engine's own resolved configuration."""
    delivered: Delivered
    """The work that was asked for and done."""
    window_turns: frozenset[Turn]
    """Turns of the steady window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A cell against its opening baseline."""

    gates: tuple[Gate, ...] = ()
    turn_overlap: float | None = None
    """Share of turns that both steady windows have; None for the opening baseline itself."""
    alone: bool = False
    """Whether there was no opening baseline to hold a cell against that has to have one."""


@dataclass(slots=True)
class Pairing:
    """The opening baselines of a segment, by (pair key, label of the level)."""

    baselines: dict[tuple[str, str], Side] = field(default_factory=dict)
    ideals: dict[str, float] = field(default_factory=dict)
    """Ideal hit rates of the levels: all arms send the same."""

    def hold(
        self, config: EngineConfig, level: LoadLevel, side: Side, *, drafter_keys: Sequence[str]
    ) -> Held:
        """Hold a cell against the opening baseline of its segment, or make it that baseline."""
        key = (config.baseline().digest, level.label)
        opening = self.baselines.get(key)
        if opening is None:
            if config.is_baseline:
                self.baselines[key] = side
            return Held(alone=not config.is_baseline)
        gates = pair_gates(
            resolved=side.resolved,
            baseline_resolved=opening.resolved,
            drafter_keys=drafter_keys,
            delivered=side.delivered,
            baseline_delivered=opening.delivered,
        )
        return Held(gates=gates, turn_overlap=turn_overlap(side.window_turns, opening.window_turns))
