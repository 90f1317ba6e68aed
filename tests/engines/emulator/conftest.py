"""Builders of emulated engines for the tests of this folder."""

import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.acceptance import Acceptance
from engines.base import Server, Site
from engines.emulator import EMULATOR_VERSION
from engines.emulator.adapter import EmulatorEngine
from engines.emulator.virtual import VirtualTurn
from engines.spec import Drafter, EngineConfig, Layout, Model

QUIET = {"start": 0.0, "drift": 0.0, "step": 0.0}
"""Noise switched off."""


def _emulated(
    method: str = "none",
    k: int = 0,
    *,
    model: str = "llama-3.1-8b",
    alpha: float | None = None,
    layout: Layout | None = None,
    max_context: int = 4096,
    drafter: Drafter | None = None,
    seed: int = 0,
    **flags: Any,
) -> EngineConfig:
    """Return a configuration of the emulator without noise, unless `flags` ask for it."""
    acceptance = None if alpha is None else Acceptance(alpha=alpha)
    return EngineConfig(
        engine="emulator",
        version=EMULATOR_VERSION,
        model=Model(name=model, max_context=max_context),
        drafter=drafter or Drafter(method=method, k=k, acceptance=acceptance),
        layout=layout or Layout(),
        device="emulated",
        flags={"noise": QUIET, **flags},
        seed=seed,
    )


def _talk(
    conversations: int,
    *,
    turns: int = 3,
    prompt: int = 150,
    growth: int = 106,
    output: int = 56,
    spread: int = 0,
    seed: int = 1,
) -> list[list[VirtualTurn]]:
    """Return multi-turn conversations of random tokens; each prompt starts with the one before it."""
    draw = random.Random(seed)
    made = []
    for _ in range(conversations):
        history = [draw.randrange(32_000) for _ in range(prompt)]
        turns_of_it = []
        for _ in range(turns):
            turns_of_it.append(
                VirtualTurn(prompt=tuple(history), output_tokens=output + draw.randint(-spread, spread))
            )
            history = history + [draw.randrange(32_000) for _ in range(growth)]
        made.append(turns_of_it)
    return made


@dataclass
class Running:
    """A real emulator process."""

    url: str
    server: Server
    process: subprocess.Popen[bytes]
    log: Path

    def post(self, path: str, **body: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=30, trust_env=False)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=30, trust_env=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _spawned(config: EngineConfig, directory: Path, port: int | None = None) -> Iterator[Running]:
    """Start the emulator by its adapter's command; it may not be ready, or have ended."""
    directory.mkdir(parents=True, exist_ok=True)
    site = Site(port=port or _free_port(), directory=directory)
    command = EmulatorEngine().command(config, site)
    log = directory / "engine.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command.argv, env=dict(command.env), cwd=command.cwd, stdout=out, stderr=subprocess.STDOUT
        )
    url = f"http://127.0.0.1:{site.port}"
    try:
        yield Running(
            url=url, server=Server(url=url, config=config, pid=process.pid), process=process, log=log
        )
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def _answers(running: Running) -> bool:
    """Wait until it listens; False when it ended instead."""
    deadline = time.monotonic() + 60
    while running.process.poll() is None and time.monotonic() < deadline:
        try:
            running.get("/version")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return True
    return False


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[EngineConfig], Running]]:
    """Start emulators that live to the end of the module."""
    with ExitStack() as stack:

        def one(config: EngineConfig) -> Running:
            running = stack.enter_context(_spawned(config, tmp_path_factory.mktemp("engine")))
            assert _answers(running), running.log.read_text()
            return running

        yield one


@pytest.fixture(scope="session")
def emulated() -> Callable[..., EngineConfig]:
    return _emulated


@pytest.fixture(scope="session")
def talk() -> Callable[..., list[list[VirtualTurn]]]:
    return _talk


@pytest.fixture(scope="session")
def spawned() -> Callable[..., Any]:
    return _spawned


@pytest.fixture(scope="session")
def answers() -> Callable[[Running], bool]:
    return _answers
