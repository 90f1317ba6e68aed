"""Load levels: how much work is in flight at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LoadLevel:
    """Closed loop at a fixed number of live conversations, counted over the whole slice of a block."""

    concurrency: int
    """C: users, each playing one conversation at a time, turn after turn, without think time."""

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            message = f"load.concurrency has {self.concurrency}; it counts conversations: choose 1 or more"
            raise ValueError(message)

    @property
    def label(self) -> str:
        """Short name for tables and ids: `c16`."""
        return f"c{self.concurrency}"
