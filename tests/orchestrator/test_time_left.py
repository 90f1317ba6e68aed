"""The rest of a sweep, started as devices come free."""

import pytest

from orchestrator.time_left import Work, seconds_left


def work(*pairs: tuple[int, float]) -> list[Work]:
    return [Work(devices=devices, seconds=seconds) for devices, seconds in pairs]


@pytest.mark.parametrize(
    ("running", "waiting", "devices", "expected"),
    [
        ([], [], 4, 0.0),
        ([(2, 30.0)], [], 4, 30.0),
        # one after another on one device, both at once on two
        ([], [(1, 10.0), (1, 20.0)], 1, 30.0),
        ([], [(1, 10.0), (1, 20.0)], 2, 20.0),
        # the large one first, then the two small ones beside each other
        ([], [(1, 5.0), (1, 7.0), (2, 10.0)], 2, 17.0),
        # waits for the running one, although two devices are free
        ([(2, 30.0)], [(4, 10.0)], 4, 40.0),
        # a small one passes the large one that does not fit yet
        ([(2, 30.0)], [(4, 10.0), (2, 5.0)], 4, 40.0),
        # larger than the cluster: more nodes will come, so its time counts once the rest is over
        ([], [(8, 10.0), (1, 3.0)], 4, 13.0),
    ],
)
def test_the_last_end(
    running: list[tuple[int, float]], waiting: list[tuple[int, float]], devices: int, expected: float
) -> None:
    found = seconds_left(work(*running), work(*waiting), devices=devices)
    assert found == pytest.approx(expected)


def test_a_thousand_blocks_of_mixed_sizes_lie_close_to_the_device_time() -> None:
    blocks = work(*((size, 60.0 + index % 7) for index in range(400) for size in (1, 2, 4)))
    total = sum(entry.devices * entry.seconds for entry in blocks)
    found = seconds_left([], blocks, devices=10)
    assert total / 10 <= found <= 1.05 * total / 10
