"""K by batch size as vLLM 0.32 takes it: `num_speculative_tokens_per_batch_size`, a list of [first, last, K].

Its scheduler looks K up by the number of requests that it scheduled in a step, prompts in work among them, of
one engine. Above the last range it carries its K on, up to the largest batch. It never drafts more than
`num_speculative_tokens`, and drops the list with data parallelism (a rule refuses that).
"""

from collections.abc import Sequence
from dataclasses import replace

from engines.schedule import DYNAMIC, OPEN_END, KRange, largest_k
from engines.spec import EngineConfig


def by_batch_size(config: EngineConfig, ranges: Sequence[KRange]) -> EngineConfig:
    """Return `config` with its drafter's K by the number of running requests.

    Raises:
        EngineConfigError: `ranges` are no schedule.
    """
    k = largest_k(ranges)
    top = config.decode.max_num_seqs or OPEN_END
    ends = [max(entry.first, top) if entry.last is None else entry.last for entry in ranges]
    listed = [[entry.first, end, entry.k] for entry, end in zip(ranges, ends, strict=True)]
    options = {**config.drafter.options, DYNAMIC: listed}
    return replace(config, drafter=replace(config.drafter, k=k, options=options))
