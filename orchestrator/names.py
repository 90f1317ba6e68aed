"""Names from outside as names of folders."""

import re

from engines.digest import digest

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,99}")
_SWEEP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
DIGITS = 16


def check_name(name: str) -> None:
    """Refuse a sweep's name that is no name of a folder.

    Raises:
        ValueError: the message says what to use.
    """
    if not _SWEEP.fullmatch(name):
        message = (
            f"name is {name!r}; it becomes a folder: use up to 100 letters, digits, '.', '_' and '-', with a "
            "letter or digit first"
        )
        raise ValueError(message)


def folder_name(name: str) -> str:
    """Return a folder's name for `name`: itself where it is a plain one, else a digest of it.

    A name with slashes, dots or other marks could lead out of the folder that it belongs to.
    """
    return name if _PLAIN.fullmatch(name) else digest(name)[:DIGITS]
