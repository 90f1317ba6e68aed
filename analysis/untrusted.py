"""Text that others wrote, made safe for where it is shown: one rule a channel, and all of them here.

Names of models, drafters and studies, prompts, labels, swept values, reasons, notes, messages and log tails
come from files, engines and servers. Each rule first makes text `plain`: what steers a terminal or turns the
direction of reading is gone, in every channel alike. Then:

* HTML: `for_html` gives the templates plain text, which they escape themselves;
* figures: `label`, as plotly reads markup and templates in its texts; `picture` for matplotlib, which reads
  formulas;
* Markdown: `markdown`, and `fenced` for text of many lines;
* MLflow: `spreadsheet` for names, tags and parameters, which its page exports as CSV;
* the terminal: the console (`orchestrator.tables`) makes every piece plain, and reads no markup;
* JSON: written in ASCII, as escapes that no terminal obeys.

Files that keep what was measured (results, logs, Parquet) hold it as it was: they are evidence.
"""

import html
import re
import unicodedata

from markupsafe import Markup

MARK = "\N{REPLACEMENT CHARACTER}"
"""Stands where something invisible was: two names that differ look different."""
LONGEST_LABEL = 200
"""Characters of a text in a figure."""
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # titles, links, strings
    r"|\x1b[ -/]*[0-Z\\`-~]"
)
"""Whole control sequences of terminals (ECMA-48): logs are full of harmless ones."""
_RETURN = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
"""Unicode's categories of controls, format marks, halves of pairs, and what no font has."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&$@]|://|(?<=\bwww)\.)", re.IGNORECASE)
_BLOCK = re.compile(r"^(\d{0,9})([-.=])(?=[-=\s]|$)")
"""What begins a list, an underline or a rule; -0.5 and 1.5 begin none. The other marks are escaped anyway."""
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?[\d.,]+(?:e[+-]?\d+)?\s*%?", re.IGNORECASE)


def plain(text: object, *, lines: bool = False) -> str:
    """Return text without what steers terminals, turns directions or is invisible.

    Args:
        text: anything; shown as `str` gives it.
        lines: keep line breaks and tabs; else each is a blank.
    """
    found = str(text)
    if found.isascii() and found.isprintable():
        return found
    found = _RETURN.sub("\n", _SEQUENCE.sub("", found))
    if not lines:
        found = found.replace("\n", " ").replace("\t", " ")
    elif found.isascii() and found.replace("\n", "").replace("\t", "").isprintable():
        return found
    return "".join(mark if _is_visible(mark) else MARK for mark in found)


def _is_visible(mark: str) -> bool:
    return mark in "\n\t" or unicodedata.category(mark) not in _HIDDEN


def for_html(value: object) -> object:
    """Return a value for a template that escapes: plain where it is text, as it is where it is markup."""
    return plain(value, lines=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def label(text: object) -> str:
    """Return text for a figure: plotly reads tags in all texts, and `%{...}` in those at the pointer."""
    found = _cut(plain(text), LONGEST_LABEL)
    # plotly knows neither &quot; nor &#39;, and puts the text in no attribute
    return html.escape(found, quote=False).replace("%{", "%&#123;")


def picture(text: object, *, limit: int = LONGEST_LABEL) -> str:
    """Return text for a matplotlib figure: between two dollar signs it would be a formula."""
    return _cut(plain(text), limit).replace("$", r"\$")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"


def markdown(text: object) -> str:
    """Return text as one line of Markdown that shows it as it is: no markup, no link, no block."""
    return _BLOCK.sub(r"\1\\\2", _SPECIAL.sub(_escaped, plain(text).strip()))


def _escaped(found: re.Match[str]) -> str:
    return rf"\{found[0]}"


def fenced(text: object) -> str:
    """Return text of many lines as a block of code in Markdown; no fence in it is as long as its own."""
    found = plain(text, lines=True).strip("\n")
    longest = max((len(run) for run in re.findall(r"`+", found)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{found}\n{fence}"


def spreadsheet(text: object, *, limit: int | None = None) -> str:
    """Return one line of text that a spreadsheet takes for text: what begins like a formula has a `'` before.

    Args:
        text: numbers stay numbers.
        limit: longest that is kept, in characters.
    """
    found = plain(text)
    if _FORMULA.match(found) and not _NUMBER.fullmatch(found):
        found = f"'{found}"
    return found if limit is None or len(found) <= limit else found[: limit - 3] + "..."
