"""Submitting to a real Ray head on loopback, behind a token: submit, attach, stop, go on, fetch."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.result import TREATMENT
from tests.cluster.conftest import SMALL, SPECLOAD, lost_cells, results_in, wait_until
from tests.lateness import played

pytestmark = pytest.mark.cluster

MARKER = "hunter2-Zq81-planted-marker"
"""Value of secret variables of the submitter and of the driver's node."""
TOKEN = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
WORDS = (
    *SMALL,
    "name=sent",
    "drafter=ngram",
    "drafter.k=3",
    "load.concurrency=[1,2]",
    "design.blocks=3",
)
CELLS = 3 * 3 * 2
STARTS = 3


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(address: str) -> bool:
    request = urllib.request.Request(f"{address}/api/jobs/", headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@dataclass
class Head:
    """A Ray head, and the commands as its user types them."""

    address: str
    folder: Path
    """Where the user is."""
    home: Path
    """Home of the driver's node."""
    logs: Path
    """Where Ray keeps the logs of its processes, of jobs and of workers."""
    environment: dict[str, str]

    def run(self, *words: str, token: str | None = TOKEN, timeout: float = 600) -> tuple[int, str]:
        env = {**self.environment, "RAY_API_SERVER_ADDRESS": self.address, "COLUMNS": "200"}
        if token is not None:
            env["RAY_AUTH_TOKEN"] = token
        done = subprocess.run(
            [str(SPECLOAD), *words],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    folder = tmp_path_factory.mktemp("submit")
    home, user = folder / "head-home", folder / "user"
    for path in (home, user):
        path.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    clean |= {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
    clean |= {"HF_TOKEN": MARKER, "AWS_SECRET_ACCESS_KEY": MARKER, "MLFLOW_TRACKING_PASSWORD": MARKER}
    theirs = {
        **clean,
        "HOME": str(home),
        "RAY_AUTH_TOKEN": TOKEN,
        "PATH": f"{SPECLOAD.parent}:{os.environ['PATH']}",
    }
    for _ in range(STARTS):
        with ray_head(theirs, folder / "ray.log") as (address, temp):
            if address is None:
                continue
            # no home of the user running this: it may have a token file
            yield Head(address, user, home, temp / "session_latest" / "logs", {**clean, "HOME": str(user)})
            return
    pytest.fail(f"Ray did not start: {(folder / 'ray.log').read_text()[-2000:]}")


@contextmanager
def ray_head(environment: dict[str, str], log: Path) -> Iterator[tuple[str | None, Path]]:
    """Run a Ray head on loopback; give its job server's address, None if it is not up, and its folder."""
    temp = Path(tempfile.mkdtemp(prefix="slj", dir="/tmp"))  # Ray's sockets need short paths
    ports = {
        name: free_port()
        for name in ("port", "dashboard-port", "dashboard-agent-listen-port", "ray-client-server-port")
    }
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("ray")),
                *("start", "--head", "--block", "--node-ip-address", "127.0.0.1"),
                *("--dashboard-host", "127.0.0.1", "--num-cpus", "4", "--temp-dir", str(temp)),
                *("--resources", json.dumps({"engine_slot": 1}), "--object-store-memory", str(100 * 2**20)),
                *(f"--{name}={number}" for name, number in ports.items()),
            ],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{ports['dashboard-port']}"

    def is_up() -> bool:
        return "Ray runtime started" in log.read_text() and answers(address)

    try:
        # Ray gives itself 30 s to start, which a busy machine can need
        wait_until(lambda: process.poll() is not None or is_up(), seconds=120)
        yield (address if process.poll() is None and is_up() else None), temp
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(temp, ignore_errors=True)


def test_a_missing_or_wrong_token_is_told_and_a_typo_never_reaches_the_cluster(head: Head) -> None:
    code, said = head.run("status", token=None)
    assert code == 2
    assert "RAY_AUTH_TOKEN_PATH" in said
    code, said = head.run("status", token="a" * 64)
    assert code == 2
    assert "refuses the token" in said
    assert "aaaaaaaa" not in said
    code, said = head.run("submit", *WORDS, "drafter.kay=3")
    assert code == 2
    assert "kay" in said
    assert "sweep-" not in head.run("status")[1]


def test_a_sweep_stopped_half_way_is_submitted_again_and_finishes(head: Head) -> None:
    store = head.folder / "bucket"
    words = (*WORDS, f"results={store.as_uri()}")

    code, said = head.run("submit", *words)
    assert code == 0, said
    (line,) = [line for line in said.splitlines() if line.startswith("submitted sent-")]
    sweep, job = line.split()[1], line.split()[3]
    assert job == f"sweep-{sweep.removeprefix('sent-')}-1"
    code, said = head.run("submit", *words)
    assert (code, f"{sweep} runs already as {job}: attached to it" in said) == (0, True), said

    cells = store / sweep / "cells"
    assert wait_until(lambda: len(results_in(cells)) >= 4, seconds=180), head.run("logs", sweep)[1]
    code, said = head.run("status", sweep)
    assert code == 0
    assert f"{job}: running" in said
    code, said = head.run("stop", sweep)
    assert code == 0, said
    assert f"{job} is stopped" in said
    code, said = head.run("status", job)
    assert f"{job}: stopped" in said
    before = results_in(cells)
    assert 4 <= len(before) < CELLS

    # the head's disk is lost: the sweep goes on from the copy at the URL
    shutil.rmtree(head.home / "specload")
    code, said = head.run("submit", "--follow", *words)
    assert code == 0, said
    assert f"as sweep-{sweep.removeprefix('sent-')}-2; it goes on after {job} (stopped" in said
    assert lost_cells(cells, before) == []
    after = measured(cells)
    results = results_in(cells)
    assert all(map(played, results))
    treatments = [(r.block, r.concurrency) for r in results if r.role == TREATMENT]
    assert len(set(treatments)) == len(treatments) == 6

    code, said = head.run("submit", *words)
    assert (code, f"{sweep} is finished on this cluster" in said) == (0, True), said
    code, said = head.run("fetch", sweep, "--to", "here")
    assert code == 0, said
    assert f"{len(after)} cells are in here/{sweep}" in said
    assert measured(head.folder / "here" / sweep / "cells") == after
    assert (head.folder / "here" / sweep / "report.html").is_file()
    code, said = head.run("logs", sweep)
    assert code == 0
    assert "report:" in said

    # MLflow is made anew from the ledger, and hands the results out too
    stored = head.home / "specload" / "results" / "mlflow.db"
    code, said = head.run("fetch", sweep, "--uri", f"sqlite:///{stored}", "--to", "view")
    assert code == 0, said
    assert measured(head.folder / "view" / sweep / "cells") == after
    assert list((head.folder / "view" / sweep / "figures").glob("*.json"))

    assert list(head.logs.glob("job-driver-*.log"))
    places = (head.home, head.folder, head.logs)
    written = [path for folder in places for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 5 * len(after)
    assert [path for path in written if carries(path, MARKER) or carries(path, TOKEN)] == []
    assert MARKER not in said


def carries(path: Path, secret: str) -> bool:
    return secret.encode() in path.read_bytes()


def measured(cells: Path) -> dict[str, str]:
    """Content of every complete cell's result."""
    return {
        path.parent.name: (path.parent / "result.json").read_text()
        for path in cells.glob("[!.]*/manifest.json")
    }
