"""Importer of WEKA agentic coding traces: sessions as hashes, one JSON object a file, a line or an entry.

A session is `{"id", "block_size", "hash_id_scope", "requests": [{"t", "type", "in", "out", "hash_ids",
"think_time", ...}]}`; a request of type `n` was not streamed, one of type `s` was, and one of type `subagent`
holds requests of its own.

The rules:
- Ids are local to their session (`hash_id_scope` `local`) or common to all (`global`); any integer is an id.
- A prompt has an id for each block, or for each whole block: then what is left after them is a tail of its
  own, which no other prompt shares.
- A subagent is a conversation of its own, called `ID/subagent-N`, that shares its session's ids. It starts at
  its own time, and nothing waits for it.
- A turn's gap is `think_time`; where a file lacks it, the time from the end of the reply before (`t` and
  `api_time`).
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engines.digest import seed_of
from jobs.errors import WorkloadError
from jobs.workload.fields import hash_ids, number, whole
from jobs.workload.import_log import ImportLog
from jobs.workload.json_file import json_entries
from jobs.workload.trace import TraceConversation, TraceTurn

REQUESTS = ("n", "s")
SUBAGENT = "subagent"
SCOPES = ("local", "global")
_TAILS = -(2**63)
"""Ids of tails lie between here and half of it, where no file's own ids are."""


def read_weka(paths: Sequence[Path], log: ImportLog) -> Iterator[TraceConversation]:
    """Yield each session and then its subagents.

    Raises:
        WorkloadError: a file or request is not of this form; the message names it.
    """
    log.note("sessions have no arrival of their own: each starts at 0, its subagents at their own time after")
    for path in paths:
        for where, value in json_entries(path):
            requests = value.get("requests") if isinstance(value, Mapping) else None
            if not isinstance(requests, list) or not value.get("id"):
                message = f"{where}: expected a WEKA session, an object with `id` and a list `requests`"
                raise WorkloadError(message)
            yield from _Session(value, where, log).conversations()


class _Session:
    """One session: block size, namespace, and the tails handed out so far."""

    def __init__(self, data: Mapping[str, Any], where: str, log: ImportLog) -> None:
        self._data = data
        self._where = where
        self._log = log
        self._tails = 0
        self._size = whole(data, "block_size", where=where)
        scope = data.get("hash_id_scope", "local")
        if scope not in SCOPES or self._size < 1:
            message = (
                f"{where}: `hash_id_scope` is {scope!r} and `block_size` {self._size}; known scopes: "
                f"{', '.join(SCOPES)}, and a block has a token or more"
            )
            raise WorkloadError(message)
        self._scope = str(data["id"]) if scope == "local" else ""

    def conversations(self) -> Iterator[TraceConversation]:
        return self._agent(self._data, str(self._data["id"]), self._where, start=0.0)

    def _agent(
        self, data: Mapping[str, Any], name: str, where: str, *, start: float
    ) -> Iterator[TraceConversation]:
        """Yield the conversation of a session or subagent, and then those of its own subagents."""
        turns: list[TraceTurn] = []
        others: list[tuple[Mapping[str, Any], str, float]] = []
        ended: float | None = None
        for index, request in enumerate(data["requests"]):
            place = f"{where}, requests[{index}]"
            kind = request.get("type") if isinstance(request, Mapping) else None
            if kind == SUBAGENT:
                began = start + (number(request, "t", where=place) if "t" in request else 0.0)
                others.append((request, place, began))
            elif kind in REQUESTS:
                gap, ended = self._gap(request, ended, place)
                turn = self._turn(request, gap, place)
                turns += [] if turn is None else [turn]
            else:
                message = f"{place}: the type is {kind!r}; known types: {', '.join(REQUESTS)}, {SUBAGENT}"
                raise WorkloadError(message)
        if turns:
            head = sum(
                whole(data, key, where=where)
                for key in ("tool_tokens", "system_tokens")
                if data.get(key) is not None
            )
            yield TraceConversation(
                id=name,
                turns=(replace(turns[0], gap=None), *turns[1:]),
                start=start,
                scope=self._scope,
                head_tokens=head,
            )
        else:
            self._log.drop("it has no request", what="session or subagent")
        for number_, (request, place, began) in enumerate(others, start=1):
            if isinstance(request.get("requests"), list):
                yield from self._agent(request, f"{name}/subagent-{number_}", place, start=began)
            else:
                self._log.drop("the trace has no requests of it", what="subagent")

    def _turn(self, request: Mapping[str, Any], gap: float | None, where: str) -> TraceTurn | None:
        tokens = whole(request, "in", where=where)
        output = whole(request, "out", where=where)
        ids = hash_ids(request, where=where)
        wholes, part = divmod(tokens, self._size)
        if len(ids) not in (wholes, wholes + (part > 0)):
            message = (
                f"{where}: {len(ids)} hash_ids for a prompt of {tokens} tokens, which is {wholes} whole "
                f"blocks of {self._size} and {part} tokens; the file is damaged"
            )
            raise WorkloadError(message)
        if not tokens or not output:
            self._log.drop("it has no prompt or no reply", what="request")
            return None
        if part and len(ids) == wholes:
            self._tails += 1
            ids = [*ids, _TAILS + (seed_of(str(self._data["id"]), "tail", self._tails) >> 1)]
            self._log.note(
                "a prompt's last, partly filled block has no hash in this trace: it gets tokens of its own"
            )
        return TraceTurn(
            blocks=array("q", ids),
            block_size=self._size,
            input_tokens=tokens,
            output_tokens=output,
            gap=gap,
        )

    def _gap(
        self, request: Mapping[str, Any], ended: float | None, where: str
    ) -> tuple[float | None, float | None]:
        """Return the gap before a request, and when its reply ended."""
        begin = number(request, "t", where=where) if request.get("t") is not None else None
        took = number(request, "api_time", where=where) if request.get("api_time") is not None else None
        until = None if begin is None or took is None else begin + took
        if request.get("think_time") is not None:
            return number(request, "think_time", where=where), until
        if begin is None or ended is None:
            return None, until
        return max(0.0, begin - ended), until
