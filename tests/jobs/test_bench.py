from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jobs.bench import fell_silent
from jobs.replay.data import CHUNK, ReplayData

S = 1_000_000_000


@pytest.mark.parametrize(
    ("served", "replica", "silent"),
    [
        ([], 0, True),
        ([99], 0, True),  # before the silence
        ([150], 0, False),  # others were served: this one waited for its turn
        ([150], 1, True),  # by another replica
        ([221], 0, True),  # after it
    ],
)
def test_an_engine_hangs_only_if_nobody_was_served_meanwhile(
    make_replay: Callable[..., ReplayData], served: list[int], replica: int, silent: bool
) -> None:
    data = make_replay(users=2, rounds=1)
    waiting, other = data.requests
    waiting = replace(waiting, error="stall", first=None, last=None, ended=220 * S, replica=0)
    chunks = np.array([(second * S, index + 1, 1) for index, second in enumerate(served)], dtype=CHUNK)
    found = replace(data, requests=(waiting, replace(other, replica=replica)), chunks=chunks)
    assert fell_silent(found, 120.0) is silent
    assert not fell_silent(replace(found, requests=(replace(waiting, error="cut"), other)), 120.0)
