"""The console blocks of a page: commands as a reader types them, and what has to come out."""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```console\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a page."""

    words: str
    """For a shell, as it stands on the page."""
    expected: tuple[str, ...]
    """Lines that the page shows below it; `...` stands for anything."""

    def unsaid(self, output: str) -> list[str]:
        """Return the lines of the page that are not in what was printed; widths do not count."""
        said = [" ".join(line.split()) for line in output.splitlines()]
        return [line for line in self.expected if not any(_pattern(line).fullmatch(had) for had in said)]


def commands(page: str) -> list[Command]:
    """Return the commands of all console blocks of a page below `docs/`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[Command] = []
    for block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            end = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
            shown = tuple(line for line in lines[end + 1 :] if line.strip() not in ("", "..."))
            found.append(Command(words="\n".join(lines[: end + 1]), expected=shown))
    return found


def _pattern(line: str) -> re.Pattern[str]:
    parts = (re.escape(part) for part in " ".join(line.split()).split("..."))
    return re.compile(".*".join(parts))
