"""What an engine's log says of its end, in a line."""

import re

_EXCEPTION = re.compile(
    r"^(?:\([^)]*\)\s*)?(?:(?:ERROR|CRITICAL)\b[^\]]*\]\s*)?"
    r"(?P<told>(?:\w+\.)*[A-Z]\w*(?:Error|Exception): .+)"
)
"""An exception as Python prints it, with or without the prefixes of an engine's log."""
_POINTER = "See root cause above"
"""In an exception that only passes on that another process of the engine had one."""
_MOST = 300


def last_words(tail: str) -> str:
    """Return what a log says of the end of its engine, to stand at the end of a message.

    It is the last exception that has a cause of its own: behind it come those of processes that waited for
    the one that failed, and what Python says on leaving. Without any it is the last line with words in it.
    """
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    if not lines:
        return "; its log is empty"
    found = [match["told"] for line in lines if (match := _EXCEPTION.match(line)) and _POINTER not in line]
    return f"; its log says: {found[-1][:_MOST]}" if found else f"; its log ends with: {lines[-1][:_MOST]}"
