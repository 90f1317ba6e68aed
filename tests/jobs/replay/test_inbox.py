import asyncio

from jobs.replay.inbox import Inbox


class Taken:
    def __init__(self) -> None:
        self.found: list[tuple[bytes, int]] = []

    def take(self, data: bytes, now: int) -> None:
        self.found.append((data, now))


def test_arrivals_are_taken_in_order_after_all_were_read() -> None:
    async def read() -> tuple[list[tuple[bytes, int]], list[tuple[bytes, int]]]:
        inbox, taken = Inbox(), Taken()
        inbox.put(taken, b"a", 1)
        inbox.put(taken, b"b", 2)
        before = list(taken.found)
        await asyncio.sleep(0)
        inbox.put(taken, b"c", 3)
        await asyncio.sleep(0)
        return before, taken.found

    assert asyncio.run(read()) == ([], [(b"a", 1), (b"b", 2), (b"c", 3)])


def test_who_cannot_wait_flushes_and_nothing_is_taken_twice() -> None:
    async def read() -> list[tuple[bytes, int]]:
        inbox, taken = Inbox(), Taken()
        inbox.put(taken, b"a", 1)
        inbox.flush()
        assert taken.found == [(b"a", 1)]
        await asyncio.sleep(0)
        return taken.found

    assert asyncio.run(read()) == [(b"a", 1)]
