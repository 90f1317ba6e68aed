"""`specload ui`: the MLflow UI on a sweep's store, on this machine only."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError, TrackingError
from orchestrator.saved import read_plan
from orchestrator.sweep_folder import no_sweep, sweep_folder
from orchestrator.tracking_store import SQLITE, store_uri
from orchestrator.tracking_views import TRAINING, chart, experiment_of, runs

SUMMARY = "Start the MLflow UI on the store of a sweep, at http://127.0.0.1:PORT."

_JOBS = "MLFLOW_SERVER_ENABLE_JOB_EXECUTION"
"""Whether the server starts eight processes for GenAI jobs, two thirds of its cost; sweeps have none."""


def run(arguments: Sequence[str]) -> int:
    """Replace this process with the MLflow server."""
    parser = Parser(prog="specload ui", description=SUMMARY)
    parser.add_argument(
        "sweep", type=Path, nargs="?", default=Path("results"), help="results/SWEEP, or results"
    )
    parser.add_argument("--port", type=int, default=5000)
    options = parser.parse_args(arguments)
    sweep = options.sweep if options.sweep.exists() else sweep_folder(options.sweep)
    argv = command(sweep, options.port)
    base = f"http://127.0.0.1:{options.port}/"
    print("once the server answers, open", flush=True)
    for told, view in views(sweep).items():
        print(f"  {base}{view}   {told}", flush=True)
    os.environ.setdefault(_JOBS, "false")
    os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted: the arguments are our own


def views(sweep: Path) -> dict[str, str]:
    """Return what there is to see, and its address on the server: of a sweep, or of all."""
    if (sweep / "plan.json").is_file():
        plan = read_plan(sweep)
        experiment = experiment_of(plan, sweep.resolve().parent)
        if experiment is not None:
            return {
                "runs of the study": runs(experiment),
                "ratio against load": chart(experiment, plan.sweep),
            }
    return {"all studies": f"#/experiments?{urlencode(TRAINING)}"}


def command(sweep: Path, port: int) -> list[str]:
    """Return the command line of the MLflow server for a sweep's folder, or for the folder of all sweeps.

    Raises:
        ConfigError: the sweep was not tracked, or its store is a server already.
        TrackingError: there is no store yet.
    """
    is_sweep = (sweep / "plan.json").is_file()
    tracking = read_plan(sweep).tracking if is_sweep else {}
    uri = store_uri(tracking, sweep.resolve().parent if is_sweep else sweep.resolve())
    if uri is None:
        again = f"specload sync {shlex.quote(str(sweep))} --uri URI"
        message = f"{sweep} was run with tracking disabled; `{again}` records it"
        raise ConfigError(message)
    if uri.startswith(("http://", "https://")):
        message = f"{sweep} is recorded on an MLflow server: open {uri}"
        raise ConfigError(message)
    store = Path(uri.removeprefix(SQLITE))
    if uri.startswith(SQLITE) and not store.is_file():
        instead = f"`specload sync {shlex.quote(str(sweep))}` makes it" if is_sweep else no_sweep(sweep)
        message = f"there is no MLflow store at {store}: {instead}"
        raise TrackingError(message)
    place = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    return [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri, *place]
