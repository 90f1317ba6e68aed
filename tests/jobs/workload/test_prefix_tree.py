from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.workload.prefix_tree import PrefixTree

SIZE = 4
PROMPTS = st.lists(
    st.tuples(
        st.sampled_from(["", "x"]),  # scope
        st.lists(st.integers(-2, 1), max_size=7),  # blocks: few values, so that prompts often share
        st.integers(1, SIZE),  # tokens of the last block
        st.booleans(),  # a first prompt
    ),
    max_size=25,
)


def naive(prompts):
    """The same from all prefixes written out."""
    seen, counts, held = set(), {}, []
    for scope, blocks, last, first in prompts:
        prefixes = [(scope, *blocks[: i + 1]) for i in range(len(blocks))]
        yield sum(prefix in seen for prefix in prefixes)
        seen.update(prefixes)
        if first:
            for index, prefix in enumerate(prefixes):
                counts[prefix] = counts.get(prefix, 0) + 1
                held.append((prefix, last if index == len(blocks) - 1 else SIZE))
    yield sum(tokens for prefix, tokens in held if counts[prefix] > 1)


@given(PROMPTS)
def test_it_counts_as_all_prefixes_written_out(prompts):
    tree = PrefixTree()
    found = [
        tree.add(
            array("q", blocks),
            scope=scope,
            block_size=SIZE,
            tokens=max(0, (len(blocks) - 1) * SIZE + last) if blocks else last,
            first=first,
        )
        for scope, blocks, last, first in prompts
    ]
    assert [*found, tree.shared_first_tokens] == list(naive(prompts))


def test_a_prompt_inside_an_edge_splits_what_one_conversation_has_in_it():
    tree = PrefixTree()
    assert tree.add(array("q", [1, 2, 3]), scope="", block_size=4, tokens=10, first=True) == 0
    assert tree.add(array("q", [1]), scope="", block_size=4, tokens=4, first=True) == 1
    assert tree.shared_first_tokens == 8
    assert tree.add(array("q", [1, 2, 3]), scope="", block_size=4, tokens=10, first=True) == 3
    assert tree.shared_first_tokens == 10 + 4 + 10
    assert tree.first_prompt_tokens == 24


@pytest.mark.parametrize("first", [True, False])
def test_a_prompt_shorter_than_a_block_has_nothing_to_share(first):
    tree = PrefixTree()
    assert tree.add(array("q"), scope="", block_size=16, tokens=9, first=first) == 0
    assert (tree.first_prompt_tokens, tree.shared_first_tokens) == (9 if first else 0, 0)
