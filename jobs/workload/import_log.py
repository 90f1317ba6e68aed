"""What an importer has to say about the files it reads: rules, and what was left out and why."""

from collections import Counter
from dataclasses import dataclass, field

from jobs.nouns import counted


@dataclass(slots=True, kw_only=True)
class ImportLog:
    """Filled by an importer while its conversations are taken from it; complete when they are exhausted."""

    validity: str
    """Content validity; starts as the format's own, and a file may say another."""
    _rules: dict[str, None] = field(default_factory=dict)
    """Sentences in order of first mention, each once."""
    _dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(what, reason) -> how often."""

    def note(self, rule: str) -> None:
        """Add a sentence that a reader must know; saying it again changes nothing."""
        self._rules[rule] = None

    def drop(self, reason: str, *, what: str = "conversation", count: int = 1) -> None:
        """Count something that is left out.

        Args:
            reason: Why, as it goes on after "dropped:"; the same words for the same reason.
            what: What one of them is called, in the singular (`conversation`, `row`, `message`).
            count: How many.
        """
        self._dropped[what, reason] += count

    @property
    def notes(self) -> tuple[str, ...]:
        """Rules first, then one line for each reason to leave something out, the most frequent first."""
        return (*self._rules, *self.dropped)

    @property
    def dropped(self) -> tuple[str, ...]:
        """One line for each reason to leave something out, the most frequent first."""
        return tuple(
            f"{counted(count, what)} dropped: {reason}"
            for (what, reason), count in self._dropped.most_common()
        )
