"""A team's store: an MLflow server on a real PostgreSQL, artifacts in a folder, two drivers at once."""

import os
import pickle
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from mlflow import MlflowClient

from orchestrator.plan import Plan
from tests.cluster.conftest import MLFLOW_SERVER, wait_until
from tests.orchestrator.conftest import small_plan as small_plan  # noqa: PLC0414 - a fixture
from tests.orchestrator.test_tracking_curves import row, said

pytestmark = pytest.mark.cluster

CELLS = 8
DRIVER = """
import pickle, sys
from dataclasses import replace
from pathlib import Path
from orchestrator.tracking import recorder_for
plan, first, summary, count = pickle.loads(Path(sys.argv[1]).read_bytes())
results = Path(sys.argv[1]).parent
folder = results / plan.sweep
cells = [replace(first, cell=f"cell-{index}") for index in range(count)]
for cell in cells:
    (folder / "cells" / cell.cell).mkdir(parents=True)
    (folder / "cells" / cell.cell / "result.json").write_text("{}")
pairs = [(cell, folder / "cells" / cell.cell) for cell in cells]
recorder = recorder_for(plan, results)
recorder.open(plan, folder)
recorder.sync(pairs[: count // 2])
print("half", flush=True)
sys.stdin.readline()
for pair in pairs[count // 2 :]:
    recorder.record(*pair)
print("away", flush=True)
sys.stdin.readline()
recorder.sync(pairs)
recorder.ratios([(cell.cell, {"ratio/total": 1.5}) for cell in cells])
recorder.summary(summary)
recorder.close(None, "FINISHED")
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def binary(name: str) -> str | None:
    """Return a program of PostgreSQL: Debian keeps them off the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture
def database() -> Iterator[str]:
    """A PostgreSQL of this test alone, on loopback."""
    initdb, postgres = binary("initdb"), binary("postgres")
    if initdb is None or postgres is None:
        pytest.skip("needs PostgreSQL's server: apt-get install postgresql")
    user = None
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        user = next(
            (entry.pw_uid for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody")), None
        )
        if user is None:
            pytest.skip("PostgreSQL does not run as root, and there is no other user")
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    if user is not None:
        os.chown(home, user, -1)
    port, data = free_port(), home / "data"
    # fmt: off
    subprocess.run(
        [initdb, "--pgdata", str(data), "--auth", "trust", "--username", "team", "--no-sync"],
        check=True, capture_output=True, user=user, cwd=home,
    )
    server = subprocess.Popen(
        [postgres, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(home), "-F"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user, cwd=home,
    )
    # fmt: on
    try:
        assert wait_until(lambda: listens(port), seconds=60)
        yield f"postgresql+psycopg2://team@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(home)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Server:
    """The team's MLflow server."""

    database: str
    folder: Path
    port: int

    def start(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "mlflow.txt").open("ab") as log:
            process = subprocess.Popen(
                [
                    sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port),
                    "--workers", "1", "--backend-store-uri", self.database,
                    "--artifacts-destination", str(self.folder / "artifacts"),
                ],
                stdout=log, stderr=log, env=MLFLOW_SERVER,
            )  # fmt: skip
        assert wait_until(self.answers, seconds=300), (self.folder / "mlflow.txt").read_text()
        return process

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    process.wait()


def driver(folder: Path, plan: Plan) -> "subprocess.Popen[str]":
    folder.mkdir()
    given = (plan, first_cell(plan), said(row("a", 1, 1.5), row("a", 16, 0.9)), CELLS)
    (folder / "input").write_bytes(pickle.dumps(given))
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder / "input")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"},
    )


def first_cell(plan: Plan) -> object:
    from tests.orchestrator.test_tracking import cell  # noqa: PLC0415 - its imports take seconds

    return cell(plan)


def heard(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_drivers_share_a_server_on_postgresql_that_restarts(
    database: str, small_plan: Plan, tmp_path: Path
) -> None:
    server = Server(database, tmp_path, free_port())
    process = server.start()
    tracking = {**small_plan.tracking, "uri": f"http://127.0.0.1:{server.port}"}
    plans = [replace(small_plan, seed=seed, tracking=tracking) for seed in (1, 2)]
    drivers = [driver(tmp_path / f"results-{index}", plan) for index, plan in enumerate(plans)]
    try:
        for each in drivers:
            heard(each, "half")
        stop(process)
        for each in drivers:
            tell(each)
        for each in drivers:
            heard(each, "away")
        process = server.start()
        for each in drivers:
            tell(each)
        assert [each.wait(timeout=120) for each in drivers] == [0, 0]

        client = MlflowClient(f"http://127.0.0.1:{server.port}")
        (experiment,) = [e for e in client.search_experiments() if e.name != "Default"]
        runs = client.search_runs([experiment.experiment_id], max_results=1000)
        found = Counter((run.data.tags["specload.sweep_id"], run.data.tags["specload.kind"]) for run in runs)
        expected = {"sweep": 1, "cell": CELLS, "curve": 1}
        assert found == {(plan.sweep, kind): count for plan in plans for kind, count in expected.items()}
        for run in runs:
            assert run.info.status == "FINISHED"
            if run.data.tags["specload.kind"] == "cell":
                assert run.data.metrics["ratio/total"] == 1.5
                assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["result.json"]
            elif run.data.tags["specload.kind"] == "curve":
                name = "at_C/ratio_total"
                points = client.get_metric_history(run.info.run_id, name)
                assert sorted((point.step, point.value) for point in points) == [(1, 1.5), (16, 0.9)]
        assert len(list((tmp_path / "artifacts").rglob("result.json"))) == 2 * CELLS
    finally:
        for each in drivers:
            each.kill()
            each.communicate()
        stop(process)
