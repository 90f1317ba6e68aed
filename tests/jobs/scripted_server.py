"""A real HTTP server process with scripted answers: what the load process is tested against.

Run as `python scripted_server.py PORTFILE [CERTIFICATE]`; with a PEM file of key and certificate it speaks
TLS. The model name of a request chooses the script, so one server shows every behaviour. Prompts are token
ids; `usage` is exact.
"""

import asyncio
import json
import ssl
import sys
from pathlib import Path
from typing import Any

TOKENS_PER_CHUNK = 3
STEP_SECONDS = 0.005


class Script:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.seen = 0
        self.cached = 2

    async def serve(self) -> None:
        try:
            while True:
                self.head = head = await self.reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                body = json.loads(await self.reader.readexactly(length))
                await getattr(self, "answer_" + body["model"])(body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.writer.close()

    # Scripts.

    async def answer_good(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.tokens(body, body["max_tokens"])
        self.end(body, body["max_tokens"])

    async def answer_rank(self, body: dict[str, Any]) -> None:
        """Say in `cached_tokens` which data-parallel rank the request named, counted from 1; 0 for none."""
        named = [
            line for line in self.head.lower().split(b"\r\n") if line.startswith(b"x-data-parallel-rank:")
        ]
        self.cached = 1 + int(named[0].split(b":")[1]) if named else 0
        await self.answer_good(body)

    async def answer_final_usage(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.tokens(body, body["max_tokens"], continuous=False)
        self.end(body, body["max_tokens"])

    async def answer_short(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.tokens({**body, "max_tokens": body["max_tokens"] - 1}, body["max_tokens"] - 1)
        self.end(body, body["max_tokens"] - 1)

    async def answer_http_500(self, body: dict[str, Any]) -> None:
        self.plain("500 Internal Server Error", b'{"error": {"message": "boom"}}')

    async def answer_error_200(self, body: dict[str, Any]) -> None:
        self.plain("200 OK", b'{"error": {"message": "out of something"}}')

    async def answer_error_line(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.tokens(body, 3)
        self.event({"error": {"message": "engine gave up"}})
        self.write_raw(b"data: [DONE]\n\n")
        self.finish()

    async def answer_cut_before(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.writer.drain()
        self.writer.transport.abort()
        raise ConnectionError

    async def answer_cut_after(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.tokens(body, 3)
        self.writer.transport.abort()
        raise ConnectionError

    async def answer_no_done(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.tokens(body, body["max_tokens"])
        self.usage(body, body["max_tokens"])
        self.finish()

    async def answer_half_way(self, body: dict[str, Any]) -> None:
        """A clean end in the middle: no finish reason, no final usage, no [DONE]."""
        self.stream_head()
        await self.tokens(body, 3)
        self.finish()

    async def answer_http_429(self, body: dict[str, Any]) -> None:
        self.plain("429 Too Many Requests", b'{"error": {"message": "slow down"}}')

    async def answer_role_first(self, body: dict[str, Any]) -> None:
        self.stream_head()
        delta = {"role": "assistant", "content": ""}
        self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        await self.writer.drain()
        await asyncio.sleep(0.2)
        await self.tokens(body, body["max_tokens"])
        self.end(body, body["max_tokens"])

    async def answer_stall(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.tokens(body, 3)
        await asyncio.sleep(60)

    async def answer_falls_silent(self, body: dict[str, Any]) -> None:
        """The stream of conversation c0 stalls at once, the others most of a second later."""
        self.stream_head()
        await self.tokens(body, 3)
        if body["prompt"][3] != 100:
            await asyncio.sleep(0.8)
            await self.tokens(body, 6)
        await asyncio.sleep(60)

    async def answer_neglects_c0(self, body: dict[str, Any]) -> None:
        """The first turn of conversation c0 stalls; the others are answered, slowly."""
        if body["prompt"][3] == 100 and len(body["prompt"]) == 4:
            await self.answer_stall(body)
        self.stream_head()
        for _ in range(6):
            self.write_raw(b": working\n\n")
            await self.writer.drain()
            await asyncio.sleep(0.05)
        await self.tokens(body, body["max_tokens"])
        self.end(body, body["max_tokens"])

    async def answer_bad_json(self, body: dict[str, Any]) -> None:
        self.stream_head()
        await self.tokens(body, 3)
        self.write_raw(b'data: {"choices": [{"text": NaN}]}\n\n')
        self.write_raw(b"data: [DONE]\n\n")
        self.finish()

    async def answer_closes(self, body: dict[str, Any]) -> None:
        self.stream_head(more=b"Connection: close\r\n")
        await self.tokens(body, body["max_tokens"])
        self.end(body, body["max_tokens"])
        await self.writer.drain()
        raise ConnectionError

    async def answer_fails_first(self, body: dict[str, Any]) -> None:
        """The first request of a connection fails, the others succeed."""
        self.seen += 1
        if self.seen == 1:
            self.plain("503 Service Unavailable", b"busy")
        else:
            await self.answer_good(body)

    async def answer_byte_by_byte(self, body: dict[str, Any]) -> None:
        """Every byte of the chunked response in a segment of its own."""
        self.stream_head()
        text = json.dumps(
            {"choices": [{"text": "\u00e4\u2028\U0001f600", "finish_reason": "length"}]}, ensure_ascii=False
        )
        for byte in f": hello\r\ndata: {text}\r\n\r\n".encode():
            self.write_raw(bytes([byte]))
            await self.writer.drain()
        self.end(body, body["max_tokens"])

    # Building blocks.

    def stream_head(self, more: bytes = b"") -> None:
        self.writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            + more
            + b"Transfer-Encoding: chunked\r\n\r\n"
        )

    def plain(self, status: str, body: bytes) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)

    def write_raw(self, data: bytes) -> None:
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def event(self, value: Any) -> None:
        self.write_raw(b"data: " + json.dumps(value).encode() + b"\n\n")

    async def tokens(self, body: dict[str, Any], count: int, *, continuous: bool = True) -> None:
        sent = 0
        while sent < count:
            sent = min(count, sent + TOKENS_PER_CHUNK)
            finish = "length" if sent >= body["max_tokens"] else None
            chunk: dict[str, Any] = {"choices": [{"index": 0, "text": "x", "finish_reason": finish}]}
            if continuous:
                chunk["usage"] = {"prompt_tokens": len(body["prompt"]), "completion_tokens": sent}
            self.event(chunk)
            self.write_raw(b": keep-alive\n\n")
            await self.writer.drain()
            await asyncio.sleep(STEP_SECONDS)

    def usage(self, body: dict[str, Any], count: int) -> None:
        usage = {
            "prompt_tokens": len(body["prompt"]),
            "completion_tokens": count,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }
        self.event({"choices": [], "usage": usage})

    def end(self, body: dict[str, Any], count: int) -> None:
        self.usage(body, count)
        self.write_raw(b"data: [DONE]\n\n")
        self.finish()

    def finish(self) -> None:
        self.writer.write(b"0\r\n\r\n")


async def main() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Script(reader, writer).serve()

    tls = None
    if len(sys.argv) > 2:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(sys.argv[2])
    server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=2**24, ssl=tls)
    target = Path(sys.argv[1])
    part = target.with_suffix(".part")
    part.write_text(str(server.sockets[0].getsockname()[1]))
    part.rename(target)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
