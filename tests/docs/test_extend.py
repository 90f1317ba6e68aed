"""What docs/howto/extend.md and the other pages name is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_FILE = re.compile(r"`((?:analysis|conf|docs|engines|jobs|orchestrator|tests|benchmarks)/[\w./]+\.\w+)`")
_TABLE = re.compile(r"`(_?[A-Z][A-Z_]+)`(?:, `(_?[A-Z][A-Z_]+)`)? (?:in|of) `([\w/]+\.py)`")
_INVENTED = ("NAME.", "RUN/")
"""Parts of names that stand for the reader's own."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_a_page_names_are_there(page):
    named = _FILE.findall(page.read_text(encoding="utf-8"))
    own = [name for name in named if not any(word in name for word in _INVENTED)]
    assert [name for name in own if not (ROOT / name).exists()] == []


def test_tables_that_the_guide_names_are_there():
    text = (ROOT / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")
    found = _TABLE.findall(text)
    assert len(found) >= 6
    for first, second, path in found:
        code = (ROOT / path).read_text(encoding="utf-8")
        for name in filter(None, (first, second)):
            assert re.search(rf"^{name}\b", code, flags=re.MULTILINE), (name, path)
