"""The steady window: the part of a replay in which the load is what the level says.

Closed loop: from when every user has finished its first conversation to the first user that finds no work.
Users that started late on a ramp delay the start by themselves.

Open loop: from when the *first wave* is over to the last arrival. The first wave are the conversations that
had arrived when the first of all ended; it is over when the last of them has ended. Until then the number of
live conversations still grows towards its mean (arrival rate times residence time), and after the last
arrival it only falls. A window that would start after it ends is empty: the replay was too short.
"""

from collections.abc import Iterable, Sequence

from jobs.replay.job import RequestRecord


class Window:
    """Watches users of a closed loop finish conversations and run out of work. Times are nanoseconds."""

    def __init__(self, users: Iterable[int]) -> None:
        self._waiting = set(users)
        self.start: int | None = None
        """Every user has finished its first conversation; None as long as one has not."""
        self.end: int | None = None
        """The first user found no work."""

    def finished(self, user: int, now: int) -> None:
        """Note that `user` finished a conversation."""
        if user in self._waiting:
            self._waiting.remove(user)
            if not self._waiting:
                self.start = now

    def out_of_work(self, now: int) -> None:
        """Note that a user found no conversation left."""
        if self.end is None or now < self.end:
            self.end = now


def open_window(requests: Sequence[RequestRecord], conversations: int) -> tuple[int | None, int | None]:
    """Return start and end of an open loop's window in nanoseconds; None, None for a replay that was cut off.

    Args:
        requests: All requests of the replay.
        conversations: How many conversations were to be played.
    """
    arrivals: dict[tuple[str, int], int] = {}
    ends: dict[tuple[str, int], int] = {}
    for request in requests:
        key = (request.conversation, request.epoch)
        arrivals[key] = min(request.scheduled, arrivals.get(key, request.scheduled))
        ends[key] = max(request.ended, ends.get(key, request.ended))
    if len(arrivals) < conversations or any(request.error == "deadline" for request in requests):
        return None, None
    first_end = min(ends.values())
    first_wave = (ends[key] for key, arrival in arrivals.items() if arrival <= first_end)
    return max(first_wave), max(arrivals.values())
