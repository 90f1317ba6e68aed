import asyncio

from jobs.replay.inbox import Inbox


class Reader:
    """Takes in what it has read by noting its name."""

    def __init__(self, name: str, served: list[str], again: "tuple[Inbox, Reader] | None" = None) -> None:
        self.name = name
        self.served = served
        self.again = again

    def take_in(self) -> None:
        self.served.append(self.name)
        if self.again is not None:
            inbox, other = self.again
            inbox.put(other)


def test_nothing_is_taken_in_before_the_loop_has_read_again() -> None:
    async def run() -> list[str]:
        served: list[str] = []
        inbox = Inbox()
        inbox.put(Reader("a", served))
        assert not served
        await asyncio.sleep(0)
        return served

    assert asyncio.run(run()) == ["a"]


def test_one_is_served_between_two_looks_of_the_loop_first_come_first_served() -> None:
    async def run() -> list[int]:
        served: list[str] = []
        inbox = Inbox()
        for name in "abc":
            inbox.put(Reader(name, served))
        lengths = []
        for _ in range(4):
            await asyncio.sleep(0)
            lengths.append(len(served))
        assert served == ["a", "b", "c"]
        return lengths

    assert asyncio.run(run()) == [1, 2, 3, 3]


def test_who_becomes_due_while_another_is_served_is_served_too() -> None:
    async def run() -> list[str]:
        served: list[str] = []
        inbox = Inbox()
        inbox.put(Reader("a", served, again=(inbox, Reader("b", served))))
        for _ in range(3):
            await asyncio.sleep(0)
        inbox.put(Reader("c", served))
        await asyncio.sleep(0)
        return served

    assert asyncio.run(run()) == ["a", "b", "c"]
