"""Connections, within one event loop."""

import asyncio
import gc

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
