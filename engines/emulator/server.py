"""The HTTP server of the emulated engine: vLLM's routes over emulated ranks."""

import asyncio
import itertools
import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from aiohttp import web
from aiohttp.typedefs import Handler

from engines.emulator import EMULATOR_VERSION
from engines.emulator.assembly import Assembly
from engines.emulator.dialect import Answer, BadRequestError, error_body, parse, speculation, tokenize
from engines.emulator.draws import combine
from engines.emulator.info import server_info
from engines.emulator.live import LiveRank, Stream
from engines.emulator.metrics import metrics_page
from engines.emulator.request import Request
from engines.emulator.router import REFRESH_SECONDS, Router
from engines.emulator.tokenizer import EmulatedTokenizer

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 64 * 1024 * 1024
RANK_HEADER = "X-data-parallel-rank"


class EmulatedServer:
    """Routes, and the ranks behind them."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._model = assembly.config.model.name
        self._tokenizer = EmulatedTokenizer()
        self._ids = itertools.count()
        flags = assembly.flags
        self.ranks = [
            LiveRank(scheduler, time_scale=flags.time_scale, fail=assembly.fail, crash=_die)
            for scheduler in assembly.ranks
        ]
        self._router = Router(assembly.ranks, refresh_seconds=REFRESH_SECONDS * flags.time_scale)
        self._metrics = metrics_page(assembly, self.ranks)
        self._healthy = assembly.fail is None or assembly.fail.at != "hang_start"

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_errors])
        app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/version", self.version),
                web.get("/v1/models", self.models),
                web.get("/metrics", self.metrics),
                web.get("/server_info", self.info),
                web.post("/v1/completions", self.completions),
                web.post("/v1/chat/completions", self.chat),
                web.post("/tokenize", self.tokenize),
                web.post("/reset_prefix_cache", self.reset),
            ]
        )
        app.cleanup_ctx.append(self._stepping)
        return app

    async def health(self, _: web.Request) -> web.Response:
        """200 when it serves."""
        return web.Response(status=200 if self._healthy else 503)

    async def version(self, _: web.Request) -> web.Response:
        """The emulator's version."""
        return web.json_response({"version": EMULATOR_VERSION})

    async def models(self, _: web.Request) -> web.Response:
        """The one model it serves."""
        config = self._assembly.config
        card = {
            "id": self._model,
            "object": "model",
            "owned_by": "specload (emulated)",
            "root": self._model,
            "max_model_len": config.model.max_context,
        }
        return web.json_response({"object": "list", "data": [card]})

    async def metrics(self, _: web.Request) -> web.Response:
        """The Prometheus page."""
        return web.Response(
            body=self._metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    async def info(self, _: web.Request) -> web.Response:
        """The resolved configuration."""
        return web.json_response(server_info(self._assembly))

    async def tokenize(self, http: web.Request) -> web.Response:
        """Token ids of a text or a chat."""
        tokens = tokenize(await http.read(), self._tokenizer)
        context = self._assembly.config.model.max_context
        return web.json_response({"count": len(tokens), "max_model_len": context, "tokens": tokens})

    async def reset(self, _: web.Request) -> web.Response:
        """Empty the prefix cache of every rank; false while requests hold blocks."""
        # Every rank is asked, as in vLLM: one that refuses must not keep the others from forgetting.
        done = [rank.scheduler.reset_cache() for rank in self.ranks]
        return web.json_response({"success": all(done)})

    async def completions(self, http: web.Request) -> web.StreamResponse:
        """Text completion."""
        return await self._generate(http, chat=False)

    async def chat(self, http: web.Request) -> web.StreamResponse:
        """Chat completion."""
        return await self._generate(http, chat=True)

    async def _generate(self, http: web.Request, *, chat: bool) -> web.StreamResponse:
        arrived = asyncio.get_running_loop().time()
        config = self._assembly.config
        ask = parse(
            await http.read(),
            chat=chat,
            model=self._model,
            max_context=config.model.max_context,
            tokenizer=self._tokenizer,
        )
        rank = self._route(http, arrived)
        number = next(self._ids)
        # Unseeded requests get numbers of their own: their draws differ, and repeat in the same order of
        # arrival.
        own = (0, ask.seed) if ask.seed is not None else (1, number)
        request = Request(
            id=f"{'chatcmpl' if chat else 'cmpl'}-emulated-{number}",
            prompt=ask.prompt,
            max_tokens=ask.max_tokens,
            key=combine(config.seed, *own),
            arrived=arrived,
            salt=ask.salt,
        )
        answer = Answer(
            ask, request_id=request.id, model=self._model, created=int(time.time()), tokenizer=self._tokenizer
        )
        stream = rank.submit(request)
        try:
            if ask.stream:
                return await _stream(http, stream, answer, config.drafter.k)
            return await _whole(stream, answer)
        finally:
            rank.close(stream)

    def _route(self, http: web.Request, arrived: float) -> LiveRank:
        pinned = http.headers.get(RANK_HEADER)
        if pinned is not None:
            if not pinned.isdigit() or int(pinned) >= len(self.ranks):
                message = f"{RANK_HEADER} is {pinned!r}; this engine has ranks 0 to {len(self.ranks) - 1}."
                raise BadRequestError(message, parameter=RANK_HEADER)
            return self.ranks[int(pinned)]
        return self.ranks[self._router.pick(arrived)]

    async def _stepping(self, _: web.Application) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(rank.run()) for rank in self.ranks]
        yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _stream(http: web.Request, stream: Stream, answer: Answer, k: int) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(http)
    request = stream.request
    completion = 0
    opening = answer.first()
    finished = False
    while not finished:
        for emission in await stream.take():
            completion += len(emission.tokens)
            finished = emission.finished
            data = opening + answer.chunk(emission.tokens, completion, finished=finished)
            opening = b""
            if finished:
                drafts = speculation(request.accepted, request.drafted, k) if k else None
                data += answer.last(completion, request.cached or 0, drafts)
            await response.write(data)
    await response.write_eof()
    return response


async def _whole(stream: Stream, answer: Answer) -> web.Response:
    tokens: list[int] = []
    while True:
        for emission in await stream.take():
            tokens += emission.tokens
            if emission.finished:
                return web.json_response(answer.whole(tokens, stream.request.cached or 0))


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequestError as error:
        body = error_body(str(error), status=error.status, parameter=error.parameter)
        return web.json_response(body, status=error.status)


def _die(trace: str) -> None:
    # At once and without cleanup: this is what a crashed engine looks like to its clients.
    log.error("the step loop ended\n%s", trace)
    logging.shutdown()
    os._exit(1)
