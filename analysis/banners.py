"""What has to be said above figures of a kind: one wording for reports, comparisons and the terminal."""

from collections.abc import Iterator

BANNERS = {
    "unpaired": ("UNPAIRED", "arms and baselines were not measured side by side in blocks"),
    "emulated": ("EMULATED", "these figures come from a model of hardware, not from hardware"),
    "synthetic": (
        "SYNTHETIC ACCEPTANCE",
        "acceptance was forced in some arms: their ratios show a ceiling, which no drafter earned",
    ),
    "oversubscribed": (
        "OVERSUBSCRIBED",
        "client and engine shared a core in some cells: those are measured, but get no verdict",
    ),
}
"""Kind of figures, as tables and summaries name it -> its name and what it means for them, as a clause."""


def banners(of: object) -> Iterator[tuple[str, str]]:
    """Yield name and words of each kind that an object (as a `Summary`) says it has, in their order."""
    return (words for kind, words in BANNERS.items() if getattr(of, kind, False))


def banner(kind: str) -> str:
    """Return a kind's name and words in one line, without a full stop."""
    return ": ".join(BANNERS[kind])
