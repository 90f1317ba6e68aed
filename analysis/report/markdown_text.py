"""Sentences and code within a line of Markdown; text alone is `analysis.untrusted.markdown`'s."""

import re

from analysis.untrusted import markdown, plain


def code(text: object) -> str:
    """Return text as code within a line; one with a bar in it as text, for tables are split at bars first."""
    found = plain(text).strip()
    if not found or "|" in found:
        return markdown(found)
    longest = max((len(run) for run in re.findall(r"`+", found)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{found}{pad}{fence}"


def prose(text: object) -> str:
    """Return a sentence of ours that may quote others: code between backticks, and all else as text."""
    parts = re.split(r"`([^`]+)`", plain(text).strip())
    return "".join(code(part) if index % 2 else _between(part) for index, part in enumerate(parts))


def _between(part: str) -> str:
    """Return what stands beside code as text, with its blanks."""
    lead, tail = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
    return f"{lead}{markdown(part)}{tail}" if part.strip() else part
