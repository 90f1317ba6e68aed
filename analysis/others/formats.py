"""The formats of other tools that can be read: a format is one module and one line here."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.others import aiperf, guidellm, vllm_bench, vllm_sweep
from analysis.others.run import OtherResultsError, OtherRun, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of JSON object."""

    name: str
    """Of the tool and its file, for people."""
    matches: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any], str, Path], Reading]
    """The object, its name in messages, its file."""
    files: tuple[str, ...] = ()
    """Patterns of the names that its tool gives its files."""
    part: Callable[[Path], Path | None] = lambda _: None
    """The file of the whole run, of one that holds a part of it and is left out of a folder."""


def _vllm(document: Mapping[str, Any], source: str, path: Path) -> Reading:
    start, server = vllm_sweep.place(path)
    return vllm_bench.read(document, source, start=start, server=server)


FORMATS = (
    Format(name="vllm bench sweep serve", matches=vllm_bench.matches, read=_vllm, files=vllm_sweep.RUNS),
    Format(name="vllm bench sweep serve, failure", matches=vllm_sweep.matches, read=vllm_sweep.read),
    Format(name="AIPerf", matches=aiperf.matches, read=aiperf.read, files=aiperf.NAMES, part=aiperf.part_of),
    Format(name="GuideLLM", matches=guidellm.matches, read=guidellm.read, files=guidellm.NAMES),
)
"""`vllm bench serve` leaves the names of its files to its user; a sweep's runs are the same objects."""
NAMES = "vllm bench serve, vllm bench sweep serve, AIPerf (JSON) and GuideLLM (JSON)"


def read_file(path: Path) -> Reading:
    """Return the runs of one file.

    Raises:
        OtherResultsError: it cannot be read, or is of no known format.
    """
    documents = list(_documents(path))
    runs: list[OtherRun] = []
    notes: list[str] = []
    for place, document in enumerate(documents):
        source = str(path) if len(documents) == 1 else f"{path} entry {place}"
        if not isinstance(document, Mapping):
            raise OtherResultsError(_unknown(source))
        found = next((entry for entry in FORMATS if entry.matches(document)), None)
        if found is None:
            raise OtherResultsError(_unknown(source))
        reading = found.read(document, source, path)
        runs += reading.runs
        notes += reading.notes
    return Reading(runs=tuple(runs), notes=tuple(notes))


def _documents(path: Path) -> Iterator[Any]:
    """Yield the JSON objects of a file: one, a list of them, or one after another."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read: {error}; formats are {NAMES}"
        raise OtherResultsError(message) from error
    decoder, place = json.JSONDecoder(), 0
    text = text.strip()
    if not text:
        message = f"{path} is empty; give a finished result"
        raise OtherResultsError(message)
    while place < len(text):
        try:
            document, place = decoder.raw_decode(text, place)
        except ValueError as error:
            message = f"{path} is no JSON from character {place} on ({error}); formats are {NAMES}"
            raise OtherResultsError(message) from error
        yield from document if isinstance(document, list) else (document,)
        while place < len(text) and text[place].isspace():
            place += 1


def _unknown(source: str) -> str:
    return (
        f"{source} is no result of a tool known here; formats are {NAMES}. CSV summaries are rounded and "
        "tell no load level: give the JSON beside them. A sweep of specload is read by `specload report`"
    )
