"""Where sweeps are kept: a local folder, or a working folder of this machine with a copy at a URL."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from orchestrator.errors import ConfigError
from orchestrator.secrecy import check_url

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsRoot:
    """The folder that keeps the sweeps, and the URL that it is mirrored to."""

    folder: Path
    """Local folder that the driver writes to: the truth while it runs."""
    url: str | None
    """fsspec URL that has a copy of every sweep's folder; None where the local folder is all."""

    @classmethod
    def of(cls, results: str, *, work: Path | None = None) -> Self:
        """Return what `results=` names; `work` is the local folder beside a URL (default: `results`).

        Raises:
            ConfigError: no usable path or URL, or one with a secret in it.
        """
        if not results.strip() or "\0" in results:
            message = f"results is {results!r}; give a folder, or a URL such as s3://BUCKET/FOLDER"
            raise ConfigError(message)
        if not is_url(results):
            if work is not None:
                message = "--work goes with results at a URL; a local results folder needs no other one"
                raise ConfigError(message)
            return cls(folder=Path(results).expanduser(), url=None)
        check_url("results", results)
        return cls(folder=(work or Path("results")).expanduser(), url=results.rstrip("/"))


def is_url(text: str) -> bool:
    """Whether `text` is a URL and no path."""
    return _URL.match(text) is not None
