"""What the log of a vLLM server tells that no benchmark's result does: KV capacity, and acceptance.

GPU KV cache size: 2,558,976 tokens, Maximum concurrency for 1,048,576 tokens per request: 2.44x
SpecDecoding metrics: Mean acceptance length: 2.52, ..., Accepted: 363 tokens, Drafted: 716 tokens,
    Per-position acceptance rate: 0.730, 0.510, 0.280, ...
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.others.run import OtherResultsError, OtherRun

WHOLE_LOG = "over the server's whole log, warm-up and all levels together"
_CAPACITY = re.compile(r"KV cache size: (?P<tokens>[\d,]+) tokens")
_ENGINE = re.compile(r"\((?P<engine>EngineCore\S*)(?: pid=\d+)?\)")
_SPECULATION = re.compile(
    r"SpecDecoding metrics: Mean acceptance length: (?P<mal>[\d.]+), .*?"
    r"Accepted: (?P<accepted>\d+) tokens, Drafted: (?P<drafted>\d+) tokens, "
    r"Per-position acceptance rate: (?P<rates>[\d.]+(?:, [\d.]+)*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLog:
    """What one log tells."""

    kv_tokens: float | None
    """KV-cache capacity over all engines of the server, as of their last start; None where not told."""
    k: int = 0
    """Draft positions; 0 without speculation."""
    steps: float = 0.0
    """Verification steps, by the mean acceptance length of each line: drafts can be shorter than K."""
    accepted: float = 0.0
    """Accepted draft tokens."""

    @property
    def mal(self) -> float | None:
        """Mean acceptance length over the whole log; None without a draft."""
        return 1.0 + self.accepted / self.steps if self.steps else None


def read_log(path: Path) -> ServerLog:
    """Return what a server's log tells.

    Raises:
        OtherResultsError: it cannot be read, or has none of the lines.
    """
    capacities: dict[str, float] = {}
    k, steps, accepted = 0, 0.0, 0.0
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if found := _CAPACITY.search(line):
                    engine = _ENGINE.search(line)
                    tokens = float(found["tokens"].replace(",", ""))
                    capacities[engine["engine"] if engine else ""] = tokens
                elif found := _SPECULATION.search(line):
                    positions = len(found["rates"].split(","))
                    k = max(k, positions)
                    taken, gained = int(found["accepted"]), float(found["mal"]) - 1.0
                    steps += taken / gained if taken and gained > 0.0 else int(found["drafted"]) / positions
                    accepted += taken
    except OSError as error:
        message = f"{path} cannot be read: {error}"
        raise OtherResultsError(message) from error
    if not capacities and not steps:
        message = (
            f"{path} tells neither a KV cache size nor SpecDecoding metrics: is it the log of a vLLM server?"
        )
        raise OtherResultsError(message)
    return ServerLog(
        kv_tokens=sum(capacities.values()) if capacities else None, k=k, steps=steps, accepted=accepted
    )


def with_log(run: OtherRun, log: ServerLog) -> OtherRun:
    """Return a run with what its server's log tells; acceptance only where the run's own file has none."""
    metrics, definitions = dict(run.metrics), dict(run.definitions)
    if log.kv_tokens is not None:
        metrics["kv/capacity_tokens"] = log.kv_tokens
    if log.mal is not None and "spec/mal" not in metrics:
        metrics["spec/mal"] = log.mal
        definitions["spec/mal"] = WHOLE_LOG
    drafts = log.steps if run.drafts is None else run.drafts
    return replace(run, metrics=metrics, definitions=definitions, k=run.k or log.k, drafts=drafts)
