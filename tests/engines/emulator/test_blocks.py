from hypothesis import given, settings
from hypothesis import strategies as st

from engines.emulator.blocks import BlockPool, chain, root


def hashes(salt: str | None, *blocks: list[int]) -> list[bytes]:
    previous, made = root(salt), []
    for block in blocks:
        previous = chain(previous, block)
        made.append(previous)
    return made


def test_a_block_is_known_by_its_whole_prefix_and_salt():
    a, b = [1, 2], [3, 4]
    assert hashes(None, a, b) == hashes(None, a, b)
    assert hashes(None, a, b)[1] != hashes(None, b, b)[1]
    assert hashes("x", a)[0] != hashes(None, a)[0] != hashes("y", a)[0]


def test_released_blocks_are_found_again_until_they_are_needed():
    pool = BlockPool(3)
    known = hashes(None, [1], [2], [3])
    blocks = pool.allocate(3)
    for block, block_hash in zip(blocks, known, strict=True):
        pool.keep(block, block_hash)
    pool.release(blocks)
    assert pool.free == 3
    assert pool.match(known) == blocks
    # One is needed: the end of the prefix goes, its beginning stays.
    pool.allocate(1)
    assert pool.match(known) == blocks[:2]


def test_a_miss_ends_the_match():
    pool = BlockPool(4)
    known = hashes(None, [1], [2], [3])
    blocks = pool.allocate(3)
    pool.keep(blocks[0], known[0])
    pool.keep(blocks[2], known[2])
    assert pool.match(known) == blocks[:1]


def test_shared_blocks_stay_until_the_last_holder_leaves():
    pool = BlockPool(2)
    [block] = pool.allocate(1)
    pool.keep(block, b"h")
    pool.take([block])
    pool.release([block])
    assert pool.held == 1
    pool.release([block])
    assert pool.held == 0
    assert pool.idle_among([block]) == 1


def test_reset_is_refused_while_blocks_are_held():
    pool = BlockPool(2)
    blocks = pool.allocate(1)
    pool.keep(blocks[0], b"h")
    assert not pool.reset()
    assert pool.match([b"h"]) == blocks
    pool.release(blocks)
    assert pool.reset()
    assert pool.match([b"h"]) == []


def test_without_caching_nothing_is_kept():
    pool = BlockPool(2, caching=False)
    blocks = pool.allocate(1)
    pool.keep(blocks[0], b"h")
    assert pool.match([b"h"]) == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 3)), max_size=60))
def test_blocks_are_never_lost_or_given_twice(moves: list[tuple[bool, int, int]]):
    pool = BlockPool(8)
    held: list[list[int]] = []
    for add, size, name in moves:
        if add and size <= pool.free:
            known = [f"{name}-{index}".encode() for index in range(size)]
            found = pool.match(known)
            if size - len(found) + pool.idle_among(found) > pool.free:
                continue
            pool.take(found)
            mine = found + pool.allocate(size - len(found))
            for block, block_hash in zip(mine, known, strict=True):
                pool.keep(block, block_hash)
            held.append(mine)
        elif held:
            pool.release(held.pop(0))
        assert pool.held == len({block for blocks in held for block in blocks})
    for blocks in held:
        pool.release(blocks)
    assert pool.free == 8
