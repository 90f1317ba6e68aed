"""Orders: how balanced they are, for every number of things and blocks."""

import pytest

from orchestrator.orders import balanced_orders, neighbours


@pytest.mark.parametrize("size", range(10))
def test_places_add_up_alike(size: int) -> None:
    for count in range(1, 14):
        rows = [order for _, order in balanced_orders(size, count)]
        assert len(rows) == count
        assert all(sorted(row) == list(range(size)) for row in rows)
        sums = [sum(row.index(thing) for row in rows) for thing in range(size)]
        difference = max(sums) - min(sums) if sums else 0
        if count == 1:
            assert difference == max(0, size - 1)
        else:
            # places in an odd number of blocks cannot add up alike where their sum is no multiple of size
            assert difference == (1 if count % 2 and size % 2 == 0 and size else 0)


@pytest.mark.parametrize(("size", "count"), [(2, 2), (4, 4), (6, 6), (3, 6), (5, 10), (7, 14)])
def test_a_whole_square_holds_every_ordered_pair_equally_often(size: int, count: int) -> None:
    rows = [order for _, order in balanced_orders(size, count)]
    met = [pair for row in rows for pair in neighbours(row)]
    assert len(set(met)) == size * (size - 1)
    assert {met.count(pair) for pair in met} == {count * (size - 1) // (size * (size - 1))}


def test_every_second_order_is_the_reverse_of_the_one_before() -> None:
    rows = [order for _, order in balanced_orders(6, 10)]
    assert all(rows[index + 1] == rows[index][::-1] for index in range(0, 10, 2))


def test_a_square_that_is_used_up_is_dealt_anew() -> None:
    assert [cycle for cycle, _ in balanced_orders(4, 10)] == [0] * 4 + [1] * 4 + [2] * 2
