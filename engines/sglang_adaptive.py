"""K by batch size as SGLang 0.5.23 takes it: `--speculative-adaptive` with a JSON file of its own.

The file has a slot for each least batch size, and in each the draft lengths (`candidate_steps`) that it
chooses from by what was accepted lately; a slot with one of them keeps to it. A batch is filled up to the
next size that a CUDA graph was captured for before its slot is looked up, so a range may begin a little
early. Only EAGLE, EAGLE-3 and the target's own heads follow it: with anything else SGLang goes on with one
draft length and a warning.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engines.errors import EngineConfigError
from engines.schedule import ADAPTIVE, KRange, largest_k
from engines.spec import Drafter, EngineConfig

METHODS = frozenset({"eagle", "eagle3", "mtp"})
FILE = "adaptive.json"
_STEPS = "candidate_steps"


def by_batch_size(config: EngineConfig, ranges: Sequence[KRange]) -> EngineConfig:
    """Return `config` with its drafter's K by the number of running requests.

    Raises:
        EngineConfigError: `ranges` are no schedule, or the drafter cannot follow one.
    """
    k = largest_k(ranges)
    content = {str(entry.first): {_STEPS: [entry.k]} for entry in ranges}
    drafter = replace(config.drafter, k=k, options={**config.drafter.options, ADAPTIVE: content})
    adaptive_config(drafter)
    return replace(config, drafter=drafter)


def adaptive_config(drafter: Drafter) -> Mapping[str, Any] | None:
    """Return the content of SGLang's file; None for one draft length.

    Raises:
        EngineConfigError: SGLang would refuse it, or ignore it.
    """
    content = drafter.options.get(ADAPTIVE)
    if content is None:
        return None
    if drafter.method not in METHODS:
        message = (
            f"SGLang drafts by batch size with {', '.join(sorted(METHODS))} only, and would ignore it with "
            f"{drafter.method!r}; remove drafter.options.{ADAPTIVE}"
        )
        raise EngineConfigError(message)
    if drafter.acceptance is not None:
        message = f"forced acceptance asks for one draft length; remove it, or drafter.options.{ADAPTIVE}"
        raise EngineConfigError(message)
    longest = max((max(steps) for steps in _slots(content)), default=0)
    if longest != drafter.k:
        message = (
            f"drafter.options.{ADAPTIVE} drafts up to {longest} and drafter.k is {drafter.k}; set drafter.k "
            "to the longest"
        )
        raise EngineConfigError(message)
    return dict(content)


def _slots(content: Any) -> list[list[int]]:
    example = f'{{"1": {{"{_STEPS}": [5]}}, "9": {{"{_STEPS}": [1]}}}}'
    slots = dict(content) if isinstance(content, Mapping) else {}
    entries = [slot for size, slot in slots.items() if str(size).isdigit()]
    found = [slot.get(_STEPS) if isinstance(slot, Mapping) else None for slot in entries]
    if not found or any(
        not isinstance(steps, list) or not steps or any(type(k) is not int or k < 0 for k in steps)
        for steps in found
    ):
        message = f"drafter.options.{ADAPTIVE} is {content!r}; it is a mapping such as {example}"
        raise EngineConfigError(message)
    return [list(steps) for steps in found if steps is not None]


def adaptive_words(drafter: Drafter, directory: Path) -> tuple[str, ...]:
    """Return the words that point SGLang to its file; none for one draft length."""
    if adaptive_config(drafter) is None:
        return ()
    return ("--speculative-adaptive", "--speculative-adaptive-config", str(directory / FILE))


def adaptive_files(drafter: Drafter) -> dict[str, str]:
    """Return the file to write before the start; none for one draft length."""
    content = adaptive_config(drafter)
    return {} if content is None else {FILE: json.dumps(content, indent=1, sort_keys=True)}
