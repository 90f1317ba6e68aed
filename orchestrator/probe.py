"""One request to one engine, just as a replay sends it and reads its answer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from engines.base import Engine, Server
from engines.errors import EngineError
from engines.remote_http import server_client
from jobs.replay.body import request_body
from jobs.replay.job import ReplayJob, Speculation
from jobs.replay.stream import StreamReader
from jobs.workload.tokens import TokenTurn

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client of a replay understood of one answer."""

    error: str | None
    """Why it is no answer that can be measured; None for a whole one."""
    prompt_tokens: int | None
    """As usage says, as are the next two."""
    cached_tokens: int | None
    completion_tokens: int | None
    chunks: int
    """Chunks that carried tokens."""
    counted: bool
    """Whether every one of them said how many tokens there are so far."""
    speculation: Speculation | None
    """The engine's own account of the request's drafts."""


def ask(engine: Engine, server: Server, prompt: Sequence[int], *, tokens: int, salt: str) -> Answer:
    """Send `prompt` and return the answer of exactly `tokens` tokens.

    Args:
        engine: its adapter.
        server: the running engine.
        prompt: token ids.
        tokens: pinned length of the answer.
        salt: cache salt, where the engine takes one.

    Raises:
        EngineError: the server did not answer at all.
    """
    job = ReplayJob(
        urls=(server.url,),
        model=server.config.model.name,
        workload="",
        order=((0, 0),),
        concurrency=1,
        salt=salt if engine.capabilities.cache_salt else None,
        request_options=dict(engine.capabilities.request_options),
        seed=server.config.seed,
    )
    turn = TokenTurn(keep=0, suffix=tuple(prompt), output_tokens=tokens)
    body = request_body(job, list(prompt), turn, conversation="doctor", epoch=0, number=0)
    reader = StreamReader()
    headers = {"Content-Type": "application/json"}
    url = f"{server.url}/v1/completions"
    try:
        with (
            server_client(server) as client,
            client.stream("POST", url, content=body, headers=headers, timeout=PATIENCE_SECONDS) as response,
        ):
            if response.status_code != httpx.codes.OK:
                detail = response.read().decode(errors="replace")
                reader.fail(f"http_{response.status_code}", detail)
            else:
                for line in response.iter_lines():
                    if line.startswith("data: "):
                        reader.feed(line.removeprefix("data: ").encode(), time.monotonic_ns())
    except httpx.HTTPError as error:
        message = f"{url} did not answer: {error or type(error).__name__}"
        raise EngineError(message) from error
    counted = bool(reader.counts) and min(reader.counts) > 0
    reader.settle(tokens)
    return Answer(
        error=None if reader.error is None else f"{reader.error}: {reader.error_detail}",
        prompt_tokens=reader.prompt_tokens,
        cached_tokens=reader.cached_tokens,
        completion_tokens=reader.completion_tokens,
        chunks=len(reader.times),
        counted=counted,
        speculation=reader.speculation,
    )
