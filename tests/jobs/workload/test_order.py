from collections import Counter
from collections.abc import Callable

import pytest

from jobs.errors import WorkloadError
from jobs.workload.order import replay_order, warmup_prompts
from jobs.workload.tokens import TokenWorkload

Make = Callable[..., TokenWorkload]


@pytest.mark.parametrize(
    ("size", "users", "epochs"), [(8, 1, 1), (8, 2, 1), (8, 3, 2), (8, 16, 8), (3, 1, 2), (40, 4, 1)]
)
def test_whole_epochs_of_at_least_four_conversations_a_user(
    make_workload: Make, size: int, users: int, epochs: int
) -> None:
    order = replay_order(make_workload(size), concurrency=users, seed=1)
    assert len(order) >= 4 * users
    assert Counter(order) == Counter((index, epoch) for epoch in range(epochs) for index in range(size))
    assert [epoch for _, epoch in order] == sorted(epoch for _, epoch in order)


def test_an_asked_for_number_stops_within_an_epoch(make_workload: Make) -> None:
    workload = make_workload(40)
    order = replay_order(workload, concurrency=2, seed=1, min_conversations=10)
    assert order == replay_order(workload, concurrency=2, seed=1)[:10]
    assert len(replay_order(workload, concurrency=4, seed=1, min_conversations=10)) == 16
    assert len(replay_order(make_workload(8), concurrency=4, seed=1, min_conversations=10)) == 16


def test_the_order_depends_on_the_seed_and_the_ids_alone(make_workload: Make) -> None:
    workload = make_workload(8)
    orders = {replay_order(workload, concurrency=2, seed=seed) for seed in range(10)}
    assert len(orders) == 10
    assert replay_order(workload, concurrency=2, seed=0) == replay_order(workload, concurrency=1, seed=0)
    # Pinned: another order would replay other conversations first in a sweep that is resumed.
    assert [index for index, _ in replay_order(workload, concurrency=2, seed=0)] == [7, 3, 1, 5, 2, 0, 6, 4]
    first, second = (
        [index for index, epoch in replay_order(workload, concurrency=4, seed=0) if epoch == wanted]
        for wanted in (0, 1)
    )
    assert first != second


def test_warmup_is_as_long_and_not_in_the_workload(make_workload: Make) -> None:
    workload = make_workload(8)
    warmup = warmup_prompts(workload, requests=20, seed=1)
    assert len(warmup.conversations) == 20
    assert all(len(conversation.turns) == 1 for conversation in warmup.conversations)
    known = [prompt for conversation in workload.conversations for prompt in workload.prompts(conversation)]
    lengths = Counter(
        (len(p), t.output_tokens)
        for c in workload.conversations
        for p, t in zip(workload.prompts(c), c.turns, strict=True)
    )
    for conversation in warmup.conversations:
        [prompt] = warmup.prompts(conversation)
        assert (len(prompt), conversation.turns[0].output_tokens) in lengths
        assert any(sorted(prompt) == sorted(other) for other in known)
    fresh = sum(next(warmup.prompts(conversation)) not in known for conversation in warmup.conversations)
    assert fresh >= 18  # a shuffle of four tokens can fall on itself
    assert warmup == warmup_prompts(workload, requests=20, seed=1)
    assert warmup != warmup_prompts(workload, requests=20, seed=2)


def test_a_warmup_of_nothing(make_workload: Make) -> None:
    with pytest.raises(WorkloadError, match=r"design\.warmup_requests"):
        warmup_prompts(make_workload(), requests=0, seed=1)
