"""The parser of a command's words."""

import argparse
from typing import NoReturn

from analysis.untrusted import plain


class Parser(argparse.ArgumentParser):
    """A parser whose errors are plain: they quote words, and a pattern may bring any name of a file."""

    def error(self, message: str) -> NoReturn:
        """Print usage and the message, and exit with 2."""
        super().error(plain(message))
