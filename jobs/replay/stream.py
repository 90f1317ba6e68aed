"""What the chunks of one streamed answer say: tokens and their times, usage, the end, or the failure.

The rules for tokens:
- A chunk carries a token when it has text: `text` of a completion; `content`, `reasoning`,
  `reasoning_content` or tool calls of a chat delta. Empty text is a token that decodes to nothing, unless the
  chunk opens the role or ends the answer.
- Where chunks carry usage of their own (`continuous_usage_stats`), the count decides instead: a chunk whose
  count did not grow carries no token, one whose count grew does, whatever its text.
- Counts come from usage, never from counting chunks. Without usage on each chunk, the final count is spread
  evenly over the token-carrying chunks.
"""

from array import array
from typing import Any

import msgspec

from jobs.replay.job import Speculation

ABORTED = ("abort", "error")
"""Finish reasons with which an engine says that it gave up."""
DETAIL_LENGTH = 500


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Delta(msgspec.Struct, gc=False):
    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: Any = None


class _Choice(msgspec.Struct, gc=False):
    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None
    object: str | None = None
    metrics: msgspec.Raw = msgspec.Raw()


class _BriefUsage(msgspec.Struct, gc=False):
    completion_tokens: int = 0


class _BriefChoice(msgspec.Struct, gc=False):
    finish_reason: str | None = None


class _BriefChunk(msgspec.Struct, gc=False):
    """What has to be known of a chunk in the midst of an answer that is counted by usage."""

    choices: list[_BriefChoice] = []
    usage: _BriefUsage | None = None
    error: Any = None
    object: str | None = None


class _Speculation(msgspec.Struct):
    num_spec_steps: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    acceptance_histogram: tuple[int, ...] = ()


class _Metrics(msgspec.Struct):
    speculative_decoding: _Speculation | None = None


_decode = msgspec.json.Decoder(_Chunk).decode
_decode_brief = msgspec.json.Decoder(_BriefChunk).decode
_decode_metrics = msgspec.json.Decoder(_Metrics).decode


class StreamReader:
    """Reads one answer, payload by payload."""

    __slots__ = (
        "_counted",
        "cached_tokens",
        "completion_tokens",
        "counts",
        "done",
        "error",
        "error_detail",
        "finish_reason",
        "prompt_tokens",
        "speculation",
        "times",
    )

    def __init__(self) -> None:
        self.times = array("q")
        """Arrival of each token-carrying chunk, ns."""
        self.counts = array("i")
        """Tokens so far at each of them; zeros until `settle` where usage comes only at the end."""
        self._counted = False
        """Whether the chunk before was counted by its usage: then its text does not matter."""
        self.prompt_tokens: int | None = None
        """Prompt tokens by usage; None without one."""
        self.completion_tokens: int | None = None
        """Output tokens by the latest usage; None without one."""
        self.cached_tokens: int | None = None
        self.speculation: Speculation | None = None
        self.finish_reason: str | None = None
        self.done = False
        self.error: str | None = None
        self.error_detail = ""

    def feed(self, payload: bytes, now: int) -> None:
        """Take one event's payload that arrived at `now` (ns)."""
        if not (self._counted and self._feed_brief(payload, now)):
            self._feed_whole(payload, now)

    def _feed_brief(self, payload: bytes, now: int) -> bool:
        """Take a chunk in the midst of an answer for its count alone; return whether it is one."""
        try:
            chunk = _decode_brief(payload)
        except msgspec.DecodeError:
            return False
        usage, choices = chunk.usage, chunk.choices
        if usage is None or not choices or choices[0].finish_reason is not None:
            return False
        if chunk.error is not None or chunk.object == "error":
            return False
        count = usage.completion_tokens
        if count > self.counts[-1]:
            self.times.append(now)
            self.counts.append(count)
            self.completion_tokens = count
        return True

    def _feed_whole(self, payload: bytes, now: int) -> None:
        try:
            chunk = _decode(payload)
        except msgspec.DecodeError as problem:
            if payload == b"[DONE]":
                self.done = True
            else:
                self.fail("bad_json", f"{problem}: {_show(payload)}")
            return
        if chunk.error is not None or chunk.object == "error":
            self.fail("error_body", _show(payload))
            return
        usage, before = chunk.usage, self.completion_tokens or 0
        if usage is not None:
            self.prompt_tokens, self.completion_tokens = usage.prompt_tokens, usage.completion_tokens
            details = usage.prompt_tokens_details
            if details is not None and details.cached_tokens is not None:
                self.cached_tokens = details.cached_tokens
        if not chunk.choices:
            self._take_metrics(chunk.metrics)
            return
        choice = chunk.choices[0]
        if choice.finish_reason is not None:
            self.finish_reason = choice.finish_reason
            if choice.finish_reason in ABORTED:
                self.fail("aborted", f"finish_reason {choice.finish_reason!r}")
        if usage is None:
            if _has_token(choice):
                self.times.append(now)
                self.counts.append(0)
                self._counted = False
            return
        counts, count = self.counts, usage.completion_tokens
        # A first usage after chunks without any is a total, not this chunk's count: then the text decides.
        if count > before and (not counts or counts[-1] or _has_token(choice)):
            self.times.append(now)
            counts.append(count)
            self._counted = True

    def fail(self, error: str, detail: str) -> None:
        """Keep the first failure."""
        if self.error is None:
            self.error = error
            self.error_detail = detail[:DETAIL_LENGTH]

    def settle(self, expected_tokens: int) -> None:
        """Judge the stream at its end: it has to be whole and as long as it was pinned to be."""
        self._spread()
        missing = [
            name
            for name, there in (
                ("finish_reason", self.finish_reason is not None),
                ("usage", self.completion_tokens is not None),
                ("[DONE]", self.done),
            )
            if not there
        ]
        if missing:
            self.fail("cut", f"the stream ended without {' and '.join(missing)}")
        elif not self.times:
            self.fail("no_tokens", f"no chunk carried a token; usage says {self.completion_tokens}")
        elif self.completion_tokens != expected_tokens:
            word = "short" if (self.completion_tokens or 0) < expected_tokens else "long"
            self.fail(word, f"{self.completion_tokens} tokens instead of the pinned {expected_tokens}")

    def _take_metrics(self, metrics: msgspec.Raw) -> None:
        """Keep what the engine says about this request's drafts; other forms of the field are no failure."""
        try:
            found = _decode_metrics(metrics).speculative_decoding
        except msgspec.DecodeError:
            return
        if found is not None:
            self.speculation = Speculation(
                steps=found.num_spec_steps,
                drafted=found.num_draft_tokens,
                accepted=found.num_accepted_draft_tokens,
                histogram=found.acceptance_histogram,
            )

    def _spread(self) -> None:
        """Bring the counts in line with the final usage."""
        if not self.times or self.completion_tokens is None:
            return
        if min(self.counts) > 0:
            self.counts[-1] = max(self.counts[-1], self.completion_tokens)
            return
        chunks = len(self.times)
        for index in range(chunks):
            self.counts[index] = self.completion_tokens * (index + 1) // chunks


def _has_token(choice: _Choice) -> bool:
    if choice.text is not None:
        return bool(choice.text) or choice.finish_reason is None
    delta = choice.delta
    if delta is None:
        return False
    if delta.content or delta.reasoning or delta.reasoning_content or delta.tool_calls:
        return True
    empty = delta.content is not None or delta.reasoning is not None or delta.reasoning_content is not None
    return empty and delta.role is None and choice.finish_reason is None


def _show(payload: bytes) -> str:
    return payload[:DETAIL_LENGTH].decode(errors="replace")
