"""The MLflow store: where it is, and opening it so that it is surely usable."""

import fcntl
import importlib
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import TrackingError, TrackingUnreachableError

if TYPE_CHECKING:
    from mlflow import MlflowClient

DISABLED = "disabled"
"""`tracking.uri` of a sweep that is not recorded in MLflow."""
STORE = "mlflow.db"
ARTIFACTS = "mlartifacts"
SQLITE = "sqlite:///"
REMAKE = "a new one is made, and a sweep's own command, run again, records it there. Nothing measured is lost"
QUIET = {
    "MLFLOW_LOGGING_LEVEL": "WARNING",  # else lines about every migration
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # else two lines for every run
    "MLFLOW_DISABLE_TELEMETRY": "true",  # a measuring program calls nobody
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # the default waits for minutes, and the driver with it
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
"""Environment of the MLflow client, unless the user has set it otherwise. It is read on import."""


def store_uri(tracking: Mapping[str, Any], results: Path) -> str | None:
    """Return the URI of the MLflow store of sweeps under `results`, or None when they are not recorded."""
    uri = tracking.get("uri")
    if uri == DISABLED:
        return None
    return str(uri) if uri else f"{SQLITE}{(results / STORE).resolve()}"


def open_store(uri: str, *, ours: bool) -> "MlflowClient":
    """Return a client of a store that is there, answers, and has the schema of the installed MLflow.

    A SQLite file that is missing is created, which takes MLflow some seconds. One of an older schema is
    upgraded if it is `ours` (in the results folder; a copy is kept); a shared one is left to its owner.

    Raises:
        TrackingError: the store cannot be used; the message says what to do.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # else a line for every try
    mlflow = importlib.import_module("mlflow")
    path = _sqlite_file(uri)
    if path is None:
        return _answering(mlflow.MlflowClient(tracking_uri=uri), uri)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_name(f"{path.name}.lock")):
            revision = _revision(path)
            if revision is not None:
                _bring_up_to_date(uri, path, revision, ours=ours)
            return _answering(mlflow.MlflowClient(tracking_uri=uri), uri)
    except OSError as error:
        message = (
            f"MLflow store {path} cannot be opened ({error}); set tracking.uri to one that can be written"
        )
        raise TrackingError(message) from error


def store_errors() -> tuple[type[Exception], ...]:
    """Return what MLflow's client raises when its store fails."""
    exceptions = importlib.import_module("mlflow.exceptions")
    sqlalchemy = importlib.import_module("sqlalchemy.exc")
    alembic = importlib.import_module("alembic.util")
    return (exceptions.MlflowException, sqlalchemy.SQLAlchemyError, alembic.CommandError, OSError)


def first_line(error: Exception) -> str:
    """Return an error's first line: MLflow's go on with SQL and stack traces."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _answering(client: "MlflowClient", uri: str) -> "MlflowClient":
    try:
        client.search_experiments(max_results=1)
    except store_errors() as error:
        message = (
            f"MLflow store {uri} does not answer ({first_line(error)}). "
            "Start its server, set tracking.uri to another store, or choose tracking=disabled"
        )
        raise (TrackingUnreachableError if is_server(uri) else TrackingError)(message) from error
    return client


def is_server(uri: str) -> bool:
    """Whether the store is a server: one that does not answer now may do so later."""
    return uri.startswith(("http://", "https://"))


def _sqlite_file(uri: str) -> Path | None:
    return Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None


def _revision(path: Path) -> str | None:
    """Return the schema revision of a SQLite store, None if there is no store yet."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if "alembic_version" in tables:
                return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
    except (sqlite3.DatabaseError, TypeError) as error:
        message = f"MLflow store {path} is damaged or no SQLite file ({error}). Move it away: {REMAKE}"
        raise TrackingError(message) from error
    message = f"{path} is a SQLite file, but not of MLflow; set tracking.uri to another one"
    raise TrackingError(message)


def _bring_up_to_date(uri: str, path: Path, revision: str, *, ours: bool) -> None:
    version = importlib.import_module("mlflow.version").VERSION
    known, newest = _revisions()
    if revision == newest:
        return
    if revision not in known:
        message = (
            f"MLflow store {path} was written by a newer MLflow: version {version} here does not know "
            f"its schema {revision}. Update MLflow (`pip install -U mlflow`), or move the file away: {REMAKE}"
        )
        raise TrackingError(message)
    if not ours:
        message = (
            f"MLflow store {path} has an older schema ({revision}; version {version} here needs {newest}). "
            f"Make a copy of it, then run `mlflow db upgrade {uri}`"
        )
        raise TrackingError(message)
    shutil.copy2(path, path.with_name(f"{path.name}.{revision}"))
    upgrade = subprocess.run(
        [sys.executable, "-m", "mlflow", "db", "upgrade", uri], capture_output=True, text=True, check=False
    )
    if upgrade.returncode:
        message = f"MLflow store {path} could not be upgraded: {upgrade.stderr.strip().splitlines()[-1]}"
        raise TrackingError(message)


def _revisions() -> tuple[set[str], str | None]:
    """Return all schema revisions that the installed MLflow knows, and the newest."""
    script = importlib.import_module("alembic.script").ScriptDirectory(str(migrations_folder()))
    return {revision.revision for revision in script.walk_revisions()}, script.get_current_head()


def migrations_folder() -> Path:
    """Return the folder of the installed MLflow's schema migrations."""
    package = importlib.import_module("mlflow").__file__
    assert package is not None
    return Path(package).parent / "store" / "db_migrations"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock: two programs that create or upgrade a store at once break it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
