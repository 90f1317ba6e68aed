"""Which files of a sweep's folder `docs/reference/results.md` tells of."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "results.md"
_ANY = {"CELL": "*", "RUN": "*", "ARM": "*", "LEVEL": "*", "NNNN": "*", "r0-": "r*-"}
"""Words of the page that stand for many names -> their pattern."""


def patterns() -> list[str]:
    """Return a pattern for each file or folder that the page documents."""
    named = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [_pattern(name) for name in named]


def undocumented(sweep: Path) -> list[str]:
    """Return the files below a sweep's folder that the page does not tell of."""
    known = patterns()
    files = [path.relative_to(sweep).as_posix() for path in sweep.rglob("*") if path.is_file()]
    return [name for name in files if not any(fnmatchcase(name, pattern) for pattern in known)]


def _pattern(name: str) -> str:
    for word, pattern in _ANY.items():
        name = name.replace(word, pattern)
    return f"{name}*" if name.endswith("/") else name
