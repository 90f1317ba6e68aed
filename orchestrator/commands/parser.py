"""The parser of a command's words."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from analysis.untrusted import plain
from engines.nearest import did_you_mean
from orchestrator.sweep_folder import sweep_folder

_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are plain, as they quote words and a pattern may bring any name of a file.

    They say what was meant, too.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._sweeps: list[str] = []

    def add_sweep(self, name: str, **more: Any) -> None:
        """Add an argument that is the folder of a sweep, or its name alone.

        The error about a word that is neither names the sweeps that are there.
        """
        self._sweeps.append(name)
        self.add_argument(name, type=Path, **more)

    def parse_args(  # type: ignore[override]  # its overloads are for namespaces of other types
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse all words; the error about one that is nothing names the option that was meant."""
        found, strangers = self.parse_known_args(args, namespace)
        if strangers:
            self.error(f"unrecognized arguments: {' '.join(strangers)}{self.meant(strangers[0])}")
        for name in self._sweeps:
            place = getattr(found, name)
            setattr(found, name, None if place is None else sweep_folder(place))
        return found

    def meant(self, word: str) -> str:
        """Return ` (did you mean --OPTION?)` where a word is like an option of this parser; else nothing."""
        options = re.findall(r"--[a-z][a-z-]*", self.format_help())
        return did_you_mean(word.partition("=")[0], options) if word.startswith("-") else ""

    def error(self, message: str) -> NoReturn:
        """Print usage and the message, and exit with 2."""
        choice = _CHOICE.search(message)
        guess = did_you_mean(choice[1], re.findall(r"'([^']*)'", choice[2])) if choice else ""
        super().error(plain(f"{message}{guess}"))
