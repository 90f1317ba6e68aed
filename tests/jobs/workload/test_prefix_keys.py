from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.workload.prefix_keys import leading, prefix_keys, repeated, turn_keys
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

PROMPTS = st.lists(st.integers(0, 2), max_size=12)


@given(one=PROMPTS, other=PROMPTS, size=st.integers(1, 4))
def test_keys_are_equal_exactly_where_prefixes_of_whole_blocks_are(
    one: list[int], other: list[int], size: int
) -> None:
    mine, theirs = prefix_keys(one, size), prefix_keys(other, size)
    assert (len(mine), len(theirs)) == (len(one) // size, len(other) // size)
    for block in range(min(len(mine), len(theirs))):
        end = (block + 1) * size
        assert (mine[block] == theirs[block]) == (one[:end] == other[:end])


@given(
    turns=st.lists(st.tuples(st.integers(0, 12), PROMPTS.filter(len)), min_size=1, max_size=5),
    size=st.integers(1, 4),
)
def test_keys_of_a_growing_conversation_are_those_of_its_prompts(
    turns: list[tuple[int, list[int]]], size: int
) -> None:
    made = []
    length = 0
    for wanted, suffix in turns:
        keep = min(wanted, length)
        made.append(TokenTurn(keep=keep, suffix=suffix, output_tokens=1))
        length = keep + len(suffix)
    conversation = TokenConversation(id="c", turns=tuple(made))
    workload = TokenWorkload(name="w", conversations=(conversation,), validity="recorded", tokenizer="t")
    found = list(turn_keys(workload, conversation, size))
    for (kept, keys), turn, prompt in zip(found, made, workload.prompts(conversation), strict=True):
        assert kept == turn.keep // size
        assert keys.tolist() == prefix_keys(prompt, size).tolist()


def test_repeated_and_leading() -> None:
    parts = [np.array(part, dtype=np.uint64) for part in ([1, 2, 3], [3, 4], [2, 3, 5])]
    shared = repeated(parts)
    assert shared.tolist() == [2, 3]
    assert repeated([]).tolist() == repeated(parts[:1]).tolist() == []
    for keys, count in (([2, 3, 4], 2), ([3], 1), ([1, 2], 0), ([9], 0), ([], 0)):
        assert leading(np.array(keys, dtype=np.uint64), shared) == count
    assert leading(parts[0], np.empty(0, np.uint64)) == 0


@pytest.mark.parametrize("tokens", [[0] * 64, list(range(64)), array("I", range(64))])
def test_places_count(tokens: list[int]) -> None:
    assert len(set(prefix_keys(tokens, 4).tolist())) == 16
