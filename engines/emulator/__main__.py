"""`python -m engines.emulator`: one emulated engine as a process of its own."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from contextlib import nullcontext
from dataclasses import replace

import uvloop
from aiohttp import web

from engines.emulator import EMULATOR_VERSION
from engines.emulator.assembly import Assembly, assemble
from engines.emulator.drafters import ignored_options
from engines.emulator.faults import strike_at_start
from engines.emulator.memory import OutOfMemoryError
from engines.emulator.server import EmulatedServer
from engines.errors import EngineConfigError
from engines.spec import EngineConfig

log = logging.getLogger("engines.emulator")


def main() -> int:
    """Serve until a signal; return the exit code."""
    arguments = _parser().parse_args()
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    try:
        config = EngineConfig.from_dict(json.loads(arguments.config))
        served = _serve(
            config, arguments.start, arguments.host, arguments.port, kv_tokens=arguments.kv_tokens
        )
        return uvloop.run(served)
    except EngineConfigError as error:
        log.error("bad setting: %s", error)
        return 2
    except OutOfMemoryError as error:
        log.error("%s", error)
        return 1
    except OSError as error:
        log.error("cannot listen on %s:%d: %s", arguments.host, arguments.port, error)
        return 1


async def _serve(config: EngineConfig, start: str, host: str, port: int, *, kv_tokens: int | None) -> int:
    now = asyncio.get_running_loop().time()
    assembly = assemble(config, start=start, now=now, kv_tokens=kv_tokens)
    _announce(assembly)
    fail = assembly.fail
    taken = strike_at_start(fail, host, port) if fail else None
    if fail and fail.at == "wrong_config":
        now = asyncio.get_running_loop().time()
        assembly = assemble(replace(config, seed=config.seed + 1), start=start, now=now)
    with taken or nullcontext():
        return await _listen(assembly, host, port, deaf=fail is not None and fail.at == "hang_stop")


async def _listen(assembly: Assembly, host: str, port: int, *, deaf: bool) -> int:
    """Serve until a signal; never end for one that can be ignored if `deaf`."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, (lambda: None) if deaf else stop.set)
    # A client that leaves ends its request: the handler is cancelled, which aborts it in the scheduler.
    runner = web.AppRunner(
        EmulatedServer(assembly).application(),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=0.5,
    )
    await runner.setup()
    await web.TCPSite(runner, host, port, backlog=1024).start()
    log.info("emulated engine listens on %s:%d (process %d)", host, port, os.getpid())
    await stop.wait()
    await runner.cleanup()
    return 0


def _announce(assembly: Assembly) -> None:
    config, flags = assembly.config, assembly.flags
    log.info(
        "%s: %s on %d emulated %s device(s), %s; step times are modelled, not measured",
        EMULATOR_VERSION,
        config.model.name,
        config.layout.devices,
        flags.gpu,
        config.label,
    )
    for _ in assembly.ranks:
        log.info(
            "GPU KV cache size: %s tokens, Maximum concurrency for %s tokens per request: %.2fx (emulated)",
            f"{assembly.kv_tokens:,}",
            f"{config.model.max_context:,}",
            assembly.kv_tokens / config.model.max_context,
        )
    for option in ignored_options(config.drafter):
        log.warning("drafter.options.%s has no effect on the emulator", option)
    if assembly.fail is not None:
        log.warning("fault injection is on: %s", assembly.fail)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m engines.emulator", description="Serve one emulated engine."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--config", required=True, help="an EngineConfig as JSON")
    parser.add_argument("--kv-tokens", type=int, help="KV-cache tokens that each rank is clamped to")
    parser.add_argument(
        "--start", default="", help="name of this start; it seeds what differs between starts"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
