from collections.abc import Callable

import pytest

from jobs.measures.drafts import Drafts, drafts_of, mean_length
from jobs.replay.job import RequestRecord, Speculation


def test_accounts_add_up_and_their_mean_is_over_steps(make_record: Callable[..., RequestRecord]) -> None:
    # The first is the example of vLLM's documentation: 43 steps, 129 drafted, 10 accepted.
    requests = [
        make_record(speculation=Speculation(steps=43, drafted=129, accepted=10)),
        make_record(speculation=Speculation(steps=7, drafted=21, accepted=15)),
        make_record(),
    ]
    assert drafts_of(requests) == Drafts(steps=50, drafted=150, accepted=25, unknown=1)
    assert mean_length(requests) == pytest.approx(1.5)
    assert mean_length(requests[:1]) == pytest.approx(1 + 10 / 43)
    assert mean_length(requests[2:]) is None
    assert mean_length([make_record(speculation=Speculation(steps=0, drafted=0, accepted=0))]) is None
