"""What blocks report, cleaned of secrets before any of it is written: results, engine logs, command lines."""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath

from jobs.result import CellResult
from orchestrator.secrecy import redacted, redacted_data

_TEXT = frozenset({".log", ".txt", ".json", ".jsonl"})
"""Suffixes of files that hold text; the tables of requests and gauges hold numbers and ids of ours."""


def cleaned_result(result: CellResult) -> CellResult:
    """Return the result without secrets in its reason, log tail, caveats or identity."""
    data = result.to_dict()
    text = json.dumps(data, default=str)
    if redacted(text) == text:  # one look at all of it: nearly always there is nothing
        return result
    return CellResult.from_dict(redacted_data(data))


def cleaned_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files by name, those with text in them without secrets."""
    return {
        name: _cleaned(name, content) if PurePosixPath(name).suffix in _TEXT else content
        for name, content in files.items()
    }


def _cleaned(name: str, content: bytes) -> bytes:
    text = content.decode("utf-8", errors="surrogateescape")
    clean = redacted(text)
    if clean == text:
        return content
    if name.endswith(".json"):
        try:
            return json.dumps(redacted_data(json.loads(content)), indent=1).encode()
        except ValueError:  # no JSON after all: the text it is
            pass
    return clean.encode("utf-8", errors="surrogateescape")
