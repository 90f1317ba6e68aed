"""KV figures with known answers: whole blocks, pools that share nothing, and what waits."""

from typing import Any

import pytest

from engines.base import KVCapacity
from jobs.measures.kv import fitting, kv_metrics, longest_contexts, waiting_share
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload


def test_a_context_is_the_longest_turn_of_its_conversation_whatever_the_epoch() -> None:
    long = TokenConversation(
        id="a",
        turns=(
            TokenTurn(keep=0, suffix=[1] * 50, output_tokens=10),
            TokenTurn(keep=50, blocks=[7], block_tokens=16, output_tokens=30),
        ),
    )
    short = TokenConversation(id="b", turns=(TokenTurn(keep=0, suffix=[1] * 5, output_tokens=1),))
    workload = TokenWorkload(name="w", conversations=(long, short), validity="recorded", tokenizer="t")
    assert longest_contexts(workload, [(1, 0), (0, 0), (0, 1)]) == [6, 96, 96]


def test_figures_of_two_replicas_with_two_ranks_each() -> None:
    one = KVCapacity(tokens=2 * 320, block_size=32, blocks=20, ranks=2)
    other = KVCapacity(tokens=2 * 288, block_size=32, blocks=18, ranks=2)
    figures = kv_metrics([one, other], [60, 100], drafts=4)
    assert figures == {
        "kv/capacity_tokens": 1216.0,
        "kv/capacity_tokens_per_rank": 288.0,
        "kv/blocks": 38.0,
        "kv/block_size": 32.0,
        "kv/ranks": 4.0,
        "kv/context_mean": 80.0,
        "kv/context_largest": 100.0,
        # 84 tokens are 3 blocks of a pool's 10 or 9; 104 are 4
        "kv/conversations_mean": 2 * 3 + 2 * 3.0,
        "kv/conversations_largest": 2 * 2 + 2 * 2.0,
    }


def test_a_pool_that_is_too_small_for_one_conversation_holds_none() -> None:
    """Two pools of 100 tokens hold no conversation of 150, though together they have the room."""
    assert fitting([KVCapacity(tokens=200, block_size=None, ranks=2)], 150) == 0.0
    assert fitting([KVCapacity(tokens=200, block_size=None, ranks=1)], 150) == 1.0


def test_what_an_engine_does_not_say_is_absent() -> None:
    known, unknown = KVCapacity(tokens=100, block_size=10), KVCapacity(tokens=None, block_size=None)
    figures = kv_metrics([known, unknown], [10], drafts=0)
    assert figures["kv/capacity_tokens"] is figures["kv/conversations_mean"] is figures["kv/blocks"] is None
    assert figures["kv/context_mean"] == 10


@pytest.mark.parametrize(
    ("capacity", "uniform"),
    [
        (KVCapacity(tokens=58_240, block_size=32, blocks=1820), True),
        (KVCapacity(tokens=58_239, block_size=32, blocks=1820), True),
        (KVCapacity(tokens=91_000, block_size=32, blocks=1820), False),
        (KVCapacity(tokens=91_000, block_size=32), None),
    ],
)
def test_hybrid_models_show_in_the_product(capacity: KVCapacity, uniform: bool | None) -> None:
    assert capacity.uniform is uniform


def test_waiting_is_a_share_of_samples_whichever_replica_queues() -> None:
    def row(sampled: int, replica: int, waiting: int | None) -> dict[str, Any]:
        return {"time": sampled + replica, "sampled": sampled, "replica": replica, "waiting": waiting}

    rows = [row(10, 0, 0), row(10, 1, 2), row(20, 0, 0), row(20, 1, 0), row(30, 0, None), row(900, 0, 5)]
    assert waiting_share(rows, (0, 100)) == 0.5
    assert waiting_share(rows, (0, 15)) is None
