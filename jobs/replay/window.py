"""The steady window: from when every user has finished its first conversation to the first without work."""

from collections.abc import Iterable


class Window:
    """Watches users finish conversations and run out of work. Times are nanoseconds."""

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
        if self.end is None:
            self.end = now
