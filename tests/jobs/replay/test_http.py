"""Connections, within one event loop."""

import asyncio
import contextlib
import gc
import itertools

import uvloop

from jobs.replay.answer import Answer
from jobs.replay.http import Connection
from jobs.replay.inbox import Inbox

EVENTS = (
    b'data: {"choices":[{"text":"a","finish_reason":"length"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n'
    b"data: [DONE]\n\n"
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
RESPONSE = HEAD + b"Content-Length: %d\r\n\r\n" % len(EVENTS) + EVENTS
REQUESTS = 20


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(RESPONSE)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def protocols_left() -> int:
    """Reconnect for each request, as the load process does it: without the garbage collector."""
    async with await asyncio.start_server(answer_once, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        connection = Connection(url, inbox=Inbox())
        before = clients()
        for _ in range(REQUESTS):
            await connection.open()
            answer = Answer(1, 0)
            connection.send(b"", answer)
            await answer.finished
            assert answer.reader.error is None
        connection.abort()
        for _ in range(10):  # what was closed learns of it
            await asyncio.sleep(0.01)
        return clients() - before


def clients() -> int:
    mine = [each for each in gc.get_objects() if isinstance(each, asyncio.Protocol)]
    return sum(type(each).__module__ == "jobs.replay.http" for each in mine)


def test_a_closed_connection_leaves_nothing_behind() -> None:
    gc.collect()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            left = runner.run(protocols_left())
    finally:
        gc.enable()
        gc.collect()
    assert left <= 1  # the last one may still be on its way out


CHUNKS = 40
GONE = asyncio.Event()


async def stream_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a chunk every few milliseconds, none of them the last."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for count in range(1, CHUNKS + 1):
        await asyncio.sleep(0.005)
        event = b'data: {"choices":[{"text":"a"}],"usage":{"completion_tokens":%d}}\n\n' % count
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
    with contextlib.suppress(ConnectionError):
        await reader.read()  # until the client goes
    writer.close()
    GONE.set()


async def times_of_a_silent_stream() -> tuple[int, list[int]]:
    """Return the chunks taken in before anybody asked, and the times of all of them."""
    async with await asyncio.start_server(stream_slowly, "127.0.0.1", 0) as server:
        connection = Connection(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", inbox=Inbox())
        await connection.open()
        answer = Answer(CHUNKS, 0)
        connection.send(b"", answer)
        while len(answer.reader.times) < CHUNKS:
            before = len(answer.reader.times)
            await asyncio.sleep(0.5)
            connection.take_in()
        connection.abort()
        await GONE.wait()
        return before, list(answer.reader.times)


def test_chunks_are_taken_in_together_with_the_times_at_which_they_came() -> None:
    before, times = asyncio.run(times_of_a_silent_stream())
    assert before < CHUNKS
    assert all(later > earlier for earlier, later in itertools.pairwise(times))


async def head_of_a_request() -> bytes:
    heads: list[bytes] = []

    async def answer_and_keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(RESPONSE)
        writer.close()

    async with await asyncio.start_server(answer_and_keep, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/behind"
        connection = Connection(url, inbox=Inbox(), headers={"Authorization": "Bearer t", "X-Team": "a b"})
        await connection.open()
        answer = Answer(1, 0)
        connection.send(b"{}", answer)
        await answer.finished
        connection.abort()
    return heads[0]


def test_headers_that_a_server_asks_for_go_out_with_a_request() -> None:
    lines = asyncio.run(head_of_a_request()).split(b"\r\n")
    assert lines[0] == b"POST /behind/v1/completions HTTP/1.1"
    assert {b"Authorization: Bearer t", b"X-Team: a b", b"Content-Length: 2"} <= set(lines)
