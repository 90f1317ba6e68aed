"""The reference: every key, metric, command, section and file is in it, each with words."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from analysis.sections import SECTIONS
from jobs.metric_names import METRICS
from orchestrator.cli import COMMANDS

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """Return the hook as MkDocs loads it: from its file."""
    spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "reference_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_key_of_the_schema_has_a_meaning_and_is_on_the_page(pages):
    keys = list(pages.config_keys())
    assert len({key.name for key in keys}) == len(keys) > 100
    assert [key.name for key in keys if not key.meaning] == []
    page = pages.config_page()
    assert [key.name for key in keys if f"| `{key.name}` |" not in page] == []
    assert "| `design.slo.ttft_ms` | number, or null | null | Longest time to first token. |" in page
    assert "| `design.blocks` | integer | `3` |" in page
    assert "| `layout=tp2` |" in page
    assert "| `+experiment=quickstart` |" in page


def test_every_option_of_a_group_says_what_it_is(pages):
    silent = [line for line in pages.config_page().splitlines() if re.fullmatch(r"\| `\w+=\w+` \|  \|", line)]
    assert silent == []


def test_every_metric_is_defined(pages):
    page = pages.metrics_page()
    assert [name for name in METRICS if f"| `{name}` |" not in page] == []
    assert "||" not in page


def test_every_command_has_its_help(pages):
    page = pages.commands_page()
    for command in COMMANDS:
        assert f"## specload {command.name}\n" in page
        assert f"usage: specload {command.name}" in page


def test_every_section_says_what_it_does(pages):
    page = pages.sections_page()
    for name in SECTIONS:
        assert re.search(rf"^\| `{name}` \| \S", page, flags=re.MULTILINE), name
