"""The golden corpus: raw HTTP responses, and what a client has to make of them.

Every case is complete in itself: the bytes a server sent, how the connection ended, and the counted result.
The tests cut each of them at every byte.
"""

import json
from dataclasses import dataclass
from typing import Any

EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    response: bytes
    pinned: int = 4
    """Output tokens that were asked for."""
    counts: tuple[int, ...] = ()
    """Tokens so far at each token-carrying chunk."""
    error: str | None = None
    detail: str = ""
    """Part of the failure's explanation."""
    prompt: int | None = 7
    cached: int | None = 2
    closes: bool = False
    """The server closes the connection after the response."""


def http(body: bytes, *, status: str = "200 OK", kind: str = EVENT_STREAM) -> bytes:
    """A response of stated length."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def chunked(*parts: bytes, whole: bool = True, kind: str = EVENT_STREAM) -> bytes:
    """A response in HTTP chunks, one a part; without the last one where it is not `whole`."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    body = b"".join(b"%X\r\n%b\r\n" % (len(part), part) for part in parts)
    return head + body + (b"0\r\n\r\n" if whole else b"")


def data(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


def usage(completion: int, *, prompt: int = 7, cached: int | None = 2) -> dict[str, Any]:
    details = None if cached is None else {"cached_tokens": cached}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}


def completion(text: str = "x", *, finish: str | None = None, total: int | None = None) -> bytes:
    chunk: dict[str, Any] = {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}
    return data(chunk if total is None else chunk | {"usage": usage(total)})


def chat(delta: dict[str, Any], *, finish: str | None = None, total: int | None = None) -> bytes:
    chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return data(chunk if total is None else chunk | {"usage": usage(total)})


ROLE = chat({"role": "assistant", "content": ""})
STOP = chat({}, finish="length")
DONE = data("[DONE]")


def final(total: int) -> bytes:
    return data({"choices": [], "usage": usage(total)})


def end(total: int) -> bytes:
    return final(total) + DONE


def one_by_one(total: int = 4) -> list[bytes]:
    """Chunks of one token with usage on each, and the end."""
    return [
        *(completion(total=n, finish="length" if n == total else None) for n in range(1, total + 1)),
        final(total),
        DONE,
    ]


def by_k(k: int) -> Case:
    counts = tuple(k * n for n in range(1, 6))
    parts = [completion("x" * k, total=n, finish="length" if n == 5 * k else None) for n in counts]
    return Case(name=f"{k} tokens a chunk", response=chunked(*parts, end(5 * k)), pinned=5 * k, counts=counts)


def deltas(name: str, *parts: dict[str, Any]) -> Case:
    """Chat deltas without usage of their own: one token each."""
    counts = tuple(range(1, len(parts) + 1))
    response = chunked(ROLE, *(chat(part) for part in parts), STOP, end(len(parts)))
    return Case(name=name, response=response, pinned=len(parts), counts=counts)


GOOD = b"".join(one_by_one())
FOUR = (1, 2, 3, 4)
TOOL = {"tool_calls": [{"index": 0, "function": {"arguments": '{"q'}}]}
NOTHING: dict[str, Any] = {"prompt": None, "cached": None}

SUCCESSES = [
    Case(name="completion, usage on every chunk", response=chunked(*one_by_one()), counts=FOUR),
    Case(name="stated length", response=http(GOOD), counts=FOUR),
    Case(
        name="until the connection ends",
        response=f"HTTP/1.1 200 OK\r\nContent-Type: {EVENT_STREAM}\r\n\r\n".encode() + GOOD,
        counts=FOUR,
        closes=True,
    ),
    Case(
        name="an interim response first",
        response=b"HTTP/1.1 100 Continue\r\n\r\n" + chunked(*one_by_one()),
        counts=FOUR,
    ),
    Case(name="all in one chunk of HTTP", response=chunked(GOOD), counts=FOUR),
    Case(
        name="cut into HTTP chunks inside the JSON",
        response=chunked(*(GOOD[i : i + 11] for i in range(0, len(GOOD), 11))),
        counts=FOUR,
    ),
    *(by_k(k) for k in (1, 2, 4, 8, 16)),
    Case(
        name="first chunk bundles five tokens",
        response=chunked(completion("xxxxx", total=5), *(completion(total=n) for n in (6, 7)), STOP, end(7)),
        pinned=7,
        counts=(5, 6, 7),
    ),
    Case(
        name="usage at the end only, spread over the chunks",
        response=chunked(*(completion() for _ in range(3)), completion(finish="length"), end(10)),
        pinned=10,
        counts=(2, 5, 7, 10),
    ),
    Case(
        name="usage on the finishing chunk only",
        response=chunked(completion(), completion(), completion("", finish="length", total=6), DONE),
        pinned=6,
        counts=(3, 6),
    ),
    Case(
        name="text held back while the count grows",
        response=chunked(
            completion("", total=0),
            completion("", total=2),
            completion("ab", total=2),
            completion("c", total=4, finish="length"),
            end(4),
        ),
        counts=(2, 4),
    ),
    Case(
        name="a token that only the last usage knows",
        response=chunked(completion(total=3, finish="length"), end(4)),
        counts=(4,),
    ),
    deltas("content", {"content": "Okay"}, {"content": ","}),
    deltas("reasoning", {"reasoning": "Okay"}, {"reasoning": ","}, {"content": "yes"}),
    deltas(
        "reasoning_content", {"reasoning_content": "Okay"}, {"reasoning_content": ","}, {"content": "yes"}
    ),
    deltas("tool calls", TOOL, TOOL, TOOL),
    deltas("an empty token", {"content": ""}, {"content": "a"}),
    deltas("null beside the text", {"content": None, "reasoning": "a", "tool_calls": []}, {"content": "b"}),
    Case(
        name="role and text in one chunk",
        response=chunked(chat({"role": "assistant", "content": "a"}), STOP, end(1)),
        pinned=1,
        counts=(1,),
    ),
    Case(
        name="role chunk with usage of nothing",
        response=chunked(
            chat({"role": "assistant", "content": ""}, total=0), chat({"content": "a"}, total=4), STOP, end(4)
        ),
        counts=(4,),
    ),
    Case(
        name="empty choices and nulls in between",
        response=chunked(
            data({"choices": []}),
            completion(),
            data({"choices": [], "usage": None, "error": None}),
            completion(finish="length"),
            end(4),
        ),
        counts=(2, 4),
    ),
    Case(
        name="comments and keep-alives",
        response=chunked(
            b": hello\n\n", *(part for chunk in one_by_one() for part in (chunk, b": keep-alive\n\n"))
        ),
        counts=FOUR,
    ),
    Case(
        name="event, id and retry lines",
        response=chunked(
            *(b"event: response.output_text.delta\nid: 7\nretry: 100\n" + part for part in one_by_one())
        ),
        counts=FOUR,
    ),
    Case(name="CRLF", response=chunked(GOOD.replace(b"\n", b"\r\n")), counts=FOUR),
    Case(name="CR", response=chunked(GOOD.replace(b"\n", b"\r")), counts=FOUR),
    Case(name="no space after the colon", response=chunked(GOOD.replace(b"data: ", b"data:")), counts=FOUR),
    Case(
        name="JSON over several data lines",
        response=chunked(*(part.replace(b",", b",\ndata: ") for part in one_by_one())),
        counts=FOUR,
    ),
    Case(
        name="no empty line after [DONE]",
        response=chunked(GOOD.removesuffix(b"\n")),
        counts=FOUR,
    ),
    Case(
        name="characters of two, three and four bytes",
        response=chunked(
            completion("\u00e4", total=1), completion("\u4e2d\U0001f600", finish="length", total=4), end(4)
        ),
        counts=(1, 4),
    ),
    Case(
        name="line separators that end no line",
        response=chunked(
            completion("a\u2028b", total=1), completion("\u2029\u0085", finish="length", total=4), end(4)
        ),
        counts=(1, 4),
    ),
    Case(
        name="no count of cached tokens",
        response=chunked(
            completion(),
            data({"choices": [{"text": "", "finish_reason": "stop"}], "usage": usage(4, cached=None)}),
            DONE,
        ),
        counts=(4,),
        cached=None,
    ),
]

FAILURES = [
    Case(
        name="usage missing",
        response=chunked(completion(), completion(finish="length"), DONE),
        counts=(0, 0), error="cut", detail="without usage", **NOTHING,
    ),
    Case(
        name="[DONE] missing",
        response=chunked(*one_by_one()[:-1]),
        counts=FOUR, error="cut", detail="without [DONE]",
    ),
    Case(
        name="finish_reason missing",
        response=chunked(*(completion(total=n) for n in FOUR), end(4)),
        counts=FOUR, error="cut", detail="without finish_reason",
    ),
    Case(
        name="clean end half-way",
        response=chunked(completion(), completion()),
        counts=(0, 0), error="cut", detail="finish_reason and usage and [DONE]", **NOTHING,
    ),
    Case(
        name="clean end half-way, with usage so far",
        response=chunked(completion(total=1), completion(total=2)),
        counts=(1, 2), error="cut", detail="finish_reason and [DONE]",
    ),
    Case(
        name="clean end inside an event",
        response=chunked(completion(total=1), completion(total=2)[:-9]),
        counts=(1,), error="cut", detail="inside an event",
    ),
    Case(name="clean end, nothing sent", response=chunked(), error="cut", detail="without", **NOTHING),
    Case(
        name="closed before the first token",
        response=chunked(ROLE, whole=False),
        error="cut", detail="before the first token", closes=True, **NOTHING,
    ),
    Case(
        name="closed after the first token",
        response=chunked(completion(total=1), whole=False),
        counts=(1,), error="cut", detail="after the first token", closes=True,
    ),
    Case(
        name="closed without a word",
        response=b"",
        error="cut", detail="before the first token", closes=True, **NOTHING,
    ),
    Case(
        name="closed inside the head",
        response=b"HTTP/1.1 200 OK\r\nContent-T",
        error="cut", detail="before the first token", closes=True, **NOTHING,
    ),
    Case(
        name="200 with an error body",
        response=http(b'{"error": {"message": "out of something"}}', kind=JSON),
        error="error_body", detail="out of something", **NOTHING,
    ),
    Case(
        name="200 with an error body that calls itself a stream",
        response=http(b'{"error": {"message": "out of something"}}'),
        error="error_body", detail="out of something", **NOTHING,
    ),
    Case(
        name="200 with an empty body",
        response=http(b"", kind=JSON),
        error="error_body", detail="empty body", **NOTHING,
    ),
    *(
        Case(
            name=f"status {status}",
            response=http(b'{"error": {"message": "no"}}', status=status, kind=JSON),
            error=f"http_{status[:3]}", detail='"no"', **NOTHING,
        )
        for status in (
            "400 Bad Request", "404 Not Found", "429 Too Many Requests", "500 Internal Server Error",
            "503 Service Unavailable",
        )
    ),
    Case(
        name="status 500 that calls itself a stream",
        response=http(GOOD, status="500 Internal Server Error"),
        error="http_500", **NOTHING,
    ),
    Case(
        name="error instead of the first token",
        response=chunked(ROLE, data({"error": {"message": "engine gave up"}}), DONE),
        error="error_body", detail="engine gave up", **NOTHING,
    ),
    Case(
        name="error in the middle",
        response=chunked(completion(total=1), data({"error": {"message": "engine gave up"}}), DONE),
        counts=(1,), error="error_body", detail="engine gave up",
    ),
    Case(
        name="error after which all looks well",
        response=chunked(data({"error": "late"}), *one_by_one()),
        counts=FOUR, error="error_body", detail="late",
    ),
    Case(
        name="error of the old style under an event line",
        response=chunked(b"event: error\n" + data({"object": "error", "message": "old style"}), DONE),
        error="error_body", detail="old style", **NOTHING,
    ),
    Case(
        name="early stop despite ignore_eos",
        response=chunked(completion(total=1), completion(total=2, finish="stop"), end(2)),
        counts=(1, 2), error="short", detail="2 tokens instead of the pinned 4",
    ),
    Case(
        name="longer than pinned",
        response=chunked(*one_by_one(5)),
        counts=(1, 2, 3, 4, 5), error="long", detail="5 tokens instead of the pinned 4",
    ),
    *(
        Case(
            name=f"finish reason {reason}",
            response=chunked(completion(total=1), completion("", total=1, finish=reason), end(1)),
            counts=(1,), error="aborted", detail=reason,
        )
        for reason in ("abort", "error")
    ),
    Case(
        name="usage without a single token",
        response=chunked(ROLE, STOP, end(4)),
        error="no_tokens", detail="usage says 4",
    ),
    Case(
        name="NaN in the text",
        response=chunked(completion(total=1), data('{"choices":[{"text":NaN}]}'), DONE),
        counts=(1,), error="bad_json", detail="NaN",
    ),
    Case(
        name="NaN in a field nobody reads",
        response=chunked(completion(total=1), data('{"choices":[{"text":"a","logprobs":[NaN]}]}'), DONE),
        counts=(1,), error="bad_json", detail="NaN",
    ),
    Case(
        name="JSON that ends too early",
        response=chunked(data('{"choices": [{"te'), *one_by_one()),
        counts=FOUR, error="bad_json", detail='{"te',
    ),
    Case(
        name="JSON that is no object",
        response=chunked(data("[1, 2]"), *one_by_one()),
        counts=FOUR, error="bad_json", detail="[1, 2]",
    ),
    Case(
        name="no HTTP",
        response=b"SSH-2.0-OpenSSH_9.9\r\n",
        error="bad_http", **NOTHING,
    ),
]  # fmt: skip

CORPUS = [*SUCCESSES, *FAILURES]
