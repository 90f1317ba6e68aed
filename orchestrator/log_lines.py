"""Our own warnings on the error channel: a line each, without secrets and without what steers a terminal."""

import logging
import sys

from analysis.untrusted import plain
from orchestrator.secrecy import redacted

ROOMS = ("analysis", "engines", "jobs", "orchestrator")


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Print a record; messages quote what servers and files say."""
        sys.stderr.write(f"{plain(redacted(self.format(record)), lines=True)}\n")
        sys.stderr.flush()


def show_warnings() -> None:
    """Have warnings of our packages shown; other packages' loggers stay as they are."""
    for room in ROOMS:
        logger = logging.getLogger(room)
        if not any(isinstance(handler, _Lines) for handler in logger.handlers):
            logger.addHandler(_Lines(level=logging.WARNING))
