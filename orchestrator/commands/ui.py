"""`specload ui`: the MLflow UI on a sweep's store, on this machine only."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.errors import ConfigError, TrackingError
from orchestrator.saved import read_plan

SUMMARY = "Start the MLflow UI on the store of a sweep, at http://127.0.0.1:PORT."


def run(arguments: Sequence[str]) -> int:
    """Replace this process with the MLflow server."""
    parser = argparse.ArgumentParser(prog="specload ui", description=SUMMARY)
    parser.add_argument(
        "sweep", type=Path, nargs="?", default=Path("results"), help="results/SWEEP, or results"
    )
    parser.add_argument("--port", type=int, default=5000)
    options = parser.parse_args(arguments)
    argv = command(options.sweep, options.port)
    os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted: the arguments are our own


def command(sweep: Path, port: int) -> list[str]:
    """Return the command line of the MLflow server for a sweep's folder, or for the folder of all sweeps.

    Raises:
        ConfigError: the sweep was not tracked, or its store is a server already.
        TrackingError: there is no store yet.
    """
    uri = read_plan(sweep).tracking.get("uri") if (sweep / "plan.json").is_file() else None
    if uri == "disabled":
        message = f"{sweep} was run with tracking disabled; `specload report {sweep}` has its figures"
        raise ConfigError(message)
    if uri is not None and uri.startswith(("http://", "https://")):
        message = f"{sweep} is recorded on an MLflow server: open {uri}"
        raise ConfigError(message)
    store = ["--backend-store-uri", uri or _store(sweep)]
    return [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        *store,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
    ]


def _store(sweep: Path) -> str:
    root = sweep.parent if (sweep / "plan.json").is_file() else sweep
    path = (root / "mlflow.db").resolve()
    if not path.is_file():
        message = f"there is no MLflow store at {path}; give the folder of a sweep, or run one first"
        raise TrackingError(message)
    return f"sqlite:///{path}"
