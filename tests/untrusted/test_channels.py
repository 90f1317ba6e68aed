"""One rule a channel: the terminal, JSON, MLflow, Markdown, pictures, spreadsheets."""

import ast
import io
import json
import logging
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from rich.table import Table
from rich.text import Text

from analysis.breakdown_figure import Bar, draw_breakdown
from analysis.untrusted import LONGEST_LABEL, MARK, fenced, label, markdown, plain, spreadsheet
from orchestrator import cli
from orchestrator import tracking_fields as fields
from orchestrator.commands import cluster
from orchestrator.commands.as_json import print_json
from orchestrator.live import screen
from orchestrator.pending import pending
from orchestrator.plan import Plan
from orchestrator.tables import PlainConsole, console
from tests.orchestrator.conftest import outcomes
from tests.orchestrator.conftest import small_plan as small_plan  # noqa: PLC0414 - a fixture
from tests.orchestrator.test_live import STATUS
from tests.untrusted.hostile import FORMULAS, HOSTILE, LONG, MARKUP, STEERING, tainted_cell

ROOT = Path(__file__).parents[2]
SHOWN = "alert(1)"
"""Part of `HOSTILE` that every channel shows."""
MAY_PRINT = {"cli.py", "as_json.py", "cluster.py", "doctor.py", "ui.py"}
SHEETS = {"to_csv", "to_excel", "to_clipboard"}
GFM = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def hidden(text: str) -> set[str]:
    """Return the characters of a text that steer, turn directions or are invisible."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {mark for mark in text if mark not in "\n\t" and unicodedata.category(mark) in kinds}


def tags(text: str) -> list[str]:
    """Return what a piece of Markdown renders to: its tokens, those inside of lines too."""
    found = GFM.parse(text)
    return [child.type for token in found for child in (token, *(token.children or ()))]


def test_plain_text_has_nothing_hidden() -> None:
    assert not hidden(plain(HOSTILE))
    assert not hidden(plain(HOSTILE, lines=True))
    assert "\n" not in plain(HOSTILE)
    assert SHOWN in plain(HOSTILE)
    every = "".join(map(chr, range(0x3000)))
    assert not hidden(plain(every))
    kept = [mark for mark in every if mark in plain(mark)]
    assert all(mark in kept for mark in "aZ09 ~\u00e9\u05d0\u0627\u0939\u0e01\u2013\u2264")
    assert plain(STEERING) == f"redlink {MARK}{MARK}{MARK} "
    assert (
        plain("50 %|#####     |\r100 %|##########|\r\n", lines=True)
        == "50 %|#####     |\n100 %|##########|\n"
    )
    assert plain("unfinished \x1b]0;title") == f"unfinished {MARK}]0;title"
    assert plain(7) == "7"


@pytest.mark.parametrize("tail", [HOSTILE, LONG, *FORMULAS])
def test_markdown_shows_text_as_it_is(tail: str) -> None:
    for shape in ("{}", "x {}", "- {}", "| a |\n| --- |\n| {} |", "# {}", "**{}**"):
        made = shape.format(markdown(tail))
        assert tags(made) == tags(shape.format("words")), shape
    (token,) = GFM.parse(fenced(tail))
    assert (token.type, token.info) == ("fence", "text")
    assert not hidden(markdown(tail) + fenced(tail))


@pytest.mark.parametrize(
    "text", ["- a", "1. a", "12) a", "---", "===", "+ a", "* a", "> a", "# a", "    a", "~~~"]
)
def test_no_text_begins_a_block_in_markdown(text: str) -> None:
    assert tags(markdown(text)) == tags("words")
    assert GFM.renderInline(markdown(text)).replace("&gt;", ">") == text.strip()


def test_numbers_stay_as_they_are_in_markdown() -> None:
    for text in ("1.53", "-0.05", "eagle3-k3", "12", "2 %", "1.2 to 1.3"):
        assert markdown(text) == text


def test_labels_of_figures_hold_no_tag_and_no_template() -> None:
    made = label(HOSTILE + LONG)
    assert "<" not in made.replace("&lt;", "")
    assert label("%{x}") == "%&#123;x}"
    assert not hidden(made)
    assert len(label(LONG)) == LONGEST_LABEL
    assert label("tp1/eagle3-k3 [a=b]") == "tp1/eagle3-k3 [a=b]"


def test_no_formula_reaches_a_spreadsheet() -> None:
    for text in FORMULAS:
        assert spreadsheet(text).startswith("'"), text
    for text in ("-1", "+1.5e-3", "1,234", "-5 %", "tp1/none", "a=1", ""):
        assert spreadsheet(text) == text
    assert len(spreadsheet(LONG, limit=250)) == 250


def calls(*rooms: str) -> Iterator[tuple[Path, str]]:
    """Return calls of our code, those that may write among them: the file, and `print` or `csv.writer`."""
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text()
            if not re.search(r"print\(|Console\(|ArgumentParser\(|riter\(|\.to_", text):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    yield path, ast.unparse(node.func)


def test_all_that_is_printed_passes_one_console_and_nothing_is_written_for_spreadsheets() -> None:
    """Tables are exported as JSON and Parquet, which hold text as text."""
    for path, called in calls("analysis", "orchestrator"):
        last = called.rpartition(".")[2]
        assert last not in ("Console", "ArgumentParser"), path
        assert last != "PlainConsole" or path.name == "tables.py", path
        assert called != "print" or path.name in MAY_PRINT, path
        assert last not in SHEETS, path
        assert called not in ("csv.writer", "csv.DictWriter"), path


def test_the_terminal_obeys_nothing() -> None:
    out = io.StringIO()
    shown = PlainConsole(file=out, width=150)
    table = Table(title=HOSTILE, caption=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(Text(HOSTILE))
    shown.print(table)
    shown.print(HOSTILE, Text(HOSTILE))
    shown.print(HOSTILE, soft_wrap=True)
    with screen(shown) as (say, _):
        say(HOSTILE)
    assert not hidden(out.getvalue())
    assert "[red]rich[/red] :smile:" in out.getvalue()
    assert out.getvalue().count(SHOWN) > 5


def test_a_display_that_moves_obeys_nothing_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    shown = PlainConsole(file=out, width=150)
    with screen(shown) as (say, show):
        assert show is not None
        words = {"sweep": STATUS.sweep + HOSTILE, "notes": (HOSTILE,)}
        show(replace(STATUS, **words))
        say(HOSTILE)
    printed = out.getvalue()
    assert SHOWN in printed
    for sequence in ("\x1b]", "\x9b", "\x1b[31m", "\0", "\x07", "\u202e", "\u2066"):
        assert sequence not in printed, sequence


def test_errors_and_warnings_are_plain(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = HOSTILE.replace("\0", "")
    assert cli.main([words]) == 2
    assert cli.main(["report", str(tmp_path / words.replace("/", "|"))]) == 2
    assert cli.main(["analyse", str(tmp_path), words]) == 2
    assert cli.main(["report", str(tmp_path / words.replace("/", "|")), "--debug"]) == 2
    with pytest.raises(SystemExit):
        cli.main(["report", "x", f"--{words}"])
    # pytest keeps log records as they are, and xdist cannot send a lone surrogate
    logging.getLogger("orchestrator.tracking_mlflow").warning("store %s fails", words.replace("\ud800", ""))
    cluster.show(words)
    said = capsys.readouterr()
    assert not hidden(said.out + said.err)
    assert said.err.count(SHOWN) > 4
    assert SHOWN in said.out


def test_json_is_ascii_and_the_same_when_read(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({HOSTILE: [HOSTILE, Path("a")]})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert not hidden(printed)
    assert json.loads(printed) == {HOSTILE: [HOSTILE, "a"]}


@pytest.mark.parametrize("tail", [HOSTILE, LONG])
def test_what_mlflow_shows_is_plain(tail: str, small_plan: Plan) -> None:
    made = next(cell for segment in pending(small_plan, []) for cell in outcomes(small_plan, segment))
    result = tainted_cell(replace(made, reason="few", cause="c", log_tail="l", caveats=("mind",)), tail)
    shown: dict[str, Any] = {
        **fields.shown(fields.cell_params(small_plan, result)),
        **fields.shown(fields.cell_tags(small_plan, result, "parent")),
    }
    note = shown.pop(fields.NOTE)
    assert set(tags(note)) <= {"paragraph_open", "inline", "paragraph_close", "text", "softbreak"}
    assert MARKUP[:9] not in note
    for name, value in {**shown, "name": fields.shown_name(fields.cell_name(result))}.items():
        assert not hidden(name + value)
        assert len(value) <= fields.VALUE_LIMIT
    assert len(fields.shown_name(fields.cell_name(result))) <= fields.NAME_LIMIT
    for formula in FORMULAS:
        assert fields.shown({"study": formula})["study"].startswith("'")


@pytest.mark.filterwarnings("ignore:Glyph")  # no font has every mark
def test_pictures_show_text_as_it_is(tmp_path: Path) -> None:
    bars = [Bar(label=HOSTILE, parts=[("sampling", 1.0)]), Bar(label="b", parts=[("sampling", 2.0)])]
    draw_breakdown(bars, [tmp_path / "a.svg"], title=HOSTILE, notes=[HOSTILE])
    found = ET.parse(tmp_path / "a.svg")
    assert {entry.tag.rpartition("}")[2] for entry in found.iter()}.isdisjoint({"script", "image", "a"})
    texts = "".join(entry.text or "" for entry in found.iter() if entry.tag.endswith("}text"))
    assert SHOWN in texts
    assert not hidden(texts)


def test_a_command_without_a_terminal_is_wide() -> None:
    assert console().width > 150
    assert console(stderr=True).stderr
