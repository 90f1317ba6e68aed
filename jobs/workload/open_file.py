"""Opening workload files, with errors that name the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from jobs.errors import WorkloadError


@contextmanager
def opened(path: Path, *, advice: str = "; check workload.paths") -> Iterator[BinaryIO]:
    """Open a workload file to read its bytes.

    Raises:
        WorkloadError: it is missing, or opening or reading it fails; the message ends with `advice`.
    """
    try:
        with path.open("rb") as stream:
            yield stream
    except FileNotFoundError:
        message = f"workload file {path} does not exist{advice}"
        raise WorkloadError(message) from None
    except OSError as error:
        message = f"workload file {path} cannot be read ({error.strerror}){advice}"
        raise WorkloadError(message) from error
