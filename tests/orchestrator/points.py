"""Points of a sweep with other values than Hydra composed.

Composing one takes a fifth of a second: tests of what comes after it compose once and change values. What
Hydra itself does with words is tested in `test_sweep.py`.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.sweep import Point


def with_values(point: Point, values: Mapping[str, Any]) -> Point:
    """Return a point with other values at dotted keys, as if its user had chosen them."""
    config = copy.deepcopy(dict(point.config))
    for key, value in values.items():
        *groups, last = key.split(".")
        node = config
        for group in groups:
            node = node[group]
        node[last] = value
    chosen = {key: str(value) for key, value in values.items()}
    return replace(point, config=config, choices={**point.choices, **chosen})
