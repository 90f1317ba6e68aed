"""What is on this machine, what is missing, and how to get it. Every probe can fail on its own."""

import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from omegaconf import OmegaConf

from engines.errors import EngineError
from engines.registry import ENGINES, engine_named
from jobs.gpus import list_gpus
from jobs.nouns import counted
from orchestrator.sweep import config_folder

OK = "ok"
MISSING = "missing"
NOTE = "note"

_PACKAGES = ("specload", "ray", "mlflow", "hydra-core", "pandas", "scipy", "uvloop")
_LOW_DISK_GIB = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked for."""

    what: str
    state: str
    """`ok`, `missing`, or `note` where absence is no fault."""
    detail: str
    remedy: str = ""
    """What to do, where something is missing."""


def examine(results: Path) -> Iterator[Finding]:
    """Yield one finding after another, quick ones first."""
    yield Finding(what="Python", state=OK, detail=f"{platform.python_version()} on {platform.system()}")
    for name in _PACKAGES:
        yield _package(name)
    yield _host()
    yield _gpus()
    yield from _engines()
    yield from _models()
    yield _disk(results)
    yield _store(results)


def _package(name: str) -> Finding:
    try:
        return Finding(what=name, state=OK, detail=version(name))
    except PackageNotFoundError:
        return Finding(what=name, state=MISSING, detail="not installed", remedy="make install")


def _host() -> Finding:
    usable = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory()
    detail = (
        f"a local Ray offers {usable} CPU and {memory.total / 2**30:.0f} GiB "
        f"({memory.available / 2**30:.0f} GiB free)"
    )
    if usable < 2:
        remedy = (
            "engine and load process share the one core here: cells will be oversubscribed, without a verdict"
        )
        return Finding(what="host", state=NOTE, detail=detail, remedy=remedy)
    return Finding(what="host", state=OK, detail=detail)


def _gpus() -> Finding:
    gpus = list_gpus()
    if not gpus:
        remedy = "engine=vllm_cpu and engine=emulator need none"
        return Finding(what="GPUs", state=NOTE, detail="none that NVML knows", remedy=remedy)
    names = ", ".join(f"{gpu['index']}: {gpu['name']} {gpu['memory_gib']:.0f} GiB" for gpu in gpus)
    return Finding(what="GPUs", state=OK, detail=f"{names}; driver {gpus[0]['driver']}")


def _engines() -> Iterator[Finding]:
    for path in sorted((config_folder() / "engine").glob("*.yaml")):
        option = _option(path)
        what = f"engine={path.stem}"
        name, python = str(option["name"]), option["python"]
        if name not in ENGINES:
            yield Finding(what=what, state=MISSING, detail=f"no adapter is called {name!r}")
            continue
        try:
            device = str(option["device"])
            found = engine_named(name).version(None if python is None else str(python), device=device)
        except EngineError as error:
            yield Finding(
                what=what, state=MISSING, detail=str(python), remedy=" ".join(error.message.split())
            )
        else:
            yield Finding(what=what, state=OK, detail=f"{found}{f' in {python}' if python else ''}")


def _models() -> Iterator[Finding]:
    for path in sorted((config_folder() / "model").glob("*.yaml")):
        folder = _option(path)["path"]
        if folder is None:
            continue
        found = (Path(str(folder)).expanduser() / "config.json").is_file()
        yield Finding(
            what=f"model={path.stem}",
            state=OK if found else MISSING,
            detail=str(folder),
            remedy=""
            if found
            else "`make models` builds the small ones; others: set model.path to their folder",
        )


def _option(path: Path) -> dict[str, Any]:
    option = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    assert isinstance(option, dict)
    return {str(key): value for key, value in option.items()}


def _disk(results: Path) -> Finding:
    folder = results.resolve()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 2**30
    low = free < _LOW_DISK_GIB
    return Finding(
        what="disk",
        state=NOTE if low else OK,
        detail=f"{free:.1f} GiB free for {results}",
        remedy="an engine environment takes 4 GiB, a sweep's records far less" if low else "",
    )


def _store(results: Path) -> Finding:
    path = results / "mlflow.db"
    if not path.is_file():
        remedy = "the first sweep makes it"
        return Finding(what="MLflow store", state=NOTE, detail=f"{path} does not exist yet", remedy=remedy)
    try:
        connection = sqlite3.connect(f"file:{path.resolve()}?mode=ro", uri=True)
        try:
            runs = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        remedy = "move it away: the next run of a sweep records everything again"
        return Finding(what="MLflow store", state=MISSING, detail=f"{path}: {error}", remedy=remedy)
    return Finding(what="MLflow store", state=OK, detail=f"{path}, {counted(runs, 'run')}")
