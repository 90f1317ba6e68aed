"""What a sweep survives: a signal, a damaged folder, a full disk, MLflow away, a clock that jumps."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from mlflow import MlflowClient

from jobs.result import TREATMENT, CellResult
from orchestrator.counts import Counts
from orchestrator.pending import pending
from orchestrator.plan import Plan
from orchestrator.status import read_status
from tests.cluster.conftest import MLFLOW_SERVER, SPECLOAD, Sweeps, lives, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

ONE_BLOCK = ("drafter=eagle3", "drafter.k=3", "load.concurrency=[1,2,3]", "design.blocks=1")


def wait_for_cells(sweeps: Sweeps, driver: "subprocess.Popen[str]", count: int) -> None:
    assert wait_until(lambda: len(sweeps.results()) >= count or driver.poll() is not None, seconds=300)
    assert driver.poll() is None, sweeps.said()


def nothing_twice(results: list[CellResult], *, treatments: int) -> None:
    """Every treatment has its outcome, once."""
    found = Counter((r.block, r.arm, r.load) for r in results if r.role == TREATMENT)
    assert len(found) == treatments
    assert set(found.values()) == {1}


def test_ctrl_c_frees_everything_and_a_damaged_cell_is_measured_again(sweeps: Sweeps) -> None:
    words = (*ONE_BLOCK, "tracking=disabled")
    driver = sweeps.start(*words)
    wait_for_cells(sweeps, driver, 4)
    tree = psutil.Process(driver.pid).children(recursive=True)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(timeout=60) == 130, sweeps.said()
    assert wait_until(lambda: not any(map(lives, tree)), seconds=15), [p.cmdline() for p in tree if lives(p)]
    said = " ".join(sweeps.said().split())
    assert "was stopped by SIGINT" in said
    assert "The same command goes on where it stopped" in said
    before = sweeps.results()
    status = read_status(sweeps.sweep)
    plan = Plan.from_dict(json.loads((sweeps.sweep / "plan.json").read_text()))
    left = sum(segment.cells for segment in pending(plan, before))
    assert f"What is recorded stays ({Counts.of(before).words}); {left} cells are left" in said
    assert (status.done, status.left) == (len(before), left), "and the run that goes on begins with them"
    assert not list((sweeps.sweep / "cells").glob(".tmp-*"))

    damaged = next(result for result in before if result.role == TREATMENT)
    path = sweeps.sweep / "cells" / damaged.cell / "result.json"
    path.write_bytes(path.read_bytes()[:200])
    code, said = sweeps.run(*words)
    assert sweeps.ended(code), said
    said = " ".join(said.split())
    assert f"set aside cells/{damaged.cell}: its result.json is truncated or altered" in said
    assert (sweeps.sweep / "aside" / damaged.cell / "result.json").stat().st_size == 200
    after = sweeps.results()
    nothing_twice(after, treatments=3)
    assert sweeps.lost(each for each in before if each != damaged) == []
    assert [r.cell for r in after if (r.block, r.arm, r.load) == place(damaged)] != [damaged.cell]


def place(result: CellResult) -> tuple[int, str, str]:
    return result.block, result.arm, result.load


@contextmanager
def full_disk(sweep: Path) -> Iterator[None]:
    """Let nothing be written to the results any more: their disk is full.

    Where this user cannot mount a disk of its own, the folder of the cells is gone instead.
    """
    mount = sweep.parent
    if os.path.ismount(mount):
        filler = mount / "filler"
        with filler.open("wb") as stream:
            try:
                while stream.write(bytes(1 << 16)):
                    stream.flush()
            except OSError:
                pass
        yield
        filler.unlink()
        return
    cells, away = sweep / "cells", sweep / "cells-away"
    cells.rename(away)
    cells.write_text("no folder any more")
    yield
    cells.unlink()
    away.rename(cells)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[None]:
    """A disk of its own for the results, where this user may mount one."""
    results = tmp_path / "results"
    results.mkdir()
    mounted = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(results)],
            capture_output=True,
            check=False,
        ).returncode
        == 0
        if shutil.which("mount")
        else False
    )
    yield
    if mounted:
        subprocess.run(["umount", "--lazy", str(results)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_stops_the_sweep_cleanly_and_it_goes_on_once_there_is_room(sweeps: Sweeps) -> None:
    words = (*ONE_BLOCK, "tracking=disabled")
    driver = sweeps.start(*words)
    wait_for_cells(sweeps, driver, 2)
    tree = psutil.Process(driver.pid).children(recursive=True)
    with full_disk(sweeps.sweep):
        assert driver.wait(timeout=120) == 2, sweeps.said()
    assert wait_until(lambda: not any(map(lives, tree)), seconds=15), [p.cmdline() for p in tree if lives(p)]
    said = " ".join(sweeps.said().split())
    assert "next try in" in said
    assert "nothing half-written is counted" in said
    assert "Traceback" not in said
    before = sweeps.results()
    assert len(before) >= 2

    code, said = sweeps.run(*words)
    assert sweeps.ended(code), said
    assert "set aside" not in said
    after = sweeps.results()
    nothing_twice(after, treatments=3)
    assert sweeps.lost(before) == []


@dataclass
class MlflowServer:
    """A real tracking server on loopback."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes] | None" = None
    tree: list[psutil.Process] = field(default_factory=list)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.folder / "mlflow.txt").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port),
                    "--workers", "1", "--backend-store-uri", f"sqlite:///{self.folder / 'server.db'}",
                    "--artifacts-destination", str(self.folder / "server-artifacts"),
                ],
                stdout=log,
                stderr=log,
                env=MLFLOW_SERVER,
            )  # fmt: skip
        assert wait_until(self.answers, seconds=300), (self.folder / "mlflow.txt").read_text()
        self.tree = [psutil.Process(self.process.pid)]
        self.tree += self.tree[0].children(recursive=True)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def hang(self) -> None:
        for process in self.tree:
            process.suspend()

    def kill(self) -> None:
        for process in reversed(self.tree):
            if lives(process):
                process.kill()
        if self.process is not None:
            self.process.wait()
        self.tree = []

    def cells(self) -> list[str]:
        """Return the cells that are recorded whole: one that was being written when it hung is not."""
        client = MlflowClient(self.uri)
        (experiment,) = [e for e in client.search_experiments() if e.name != "Default"]
        runs = client.search_runs([experiment.experiment_id], "tags.`specload.kind` = 'cell'")
        whole = [run for run in runs if run.info.status != "RUNNING"]
        return sorted(run.data.tags["specload.cell_id"] for run in whole)


@pytest.fixture
def mlflow_server(tmp_path: Path) -> Iterator[MlflowServer]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = MlflowServer(tmp_path, port)
    made.start()
    yield made
    made.kill()


def test_mlflow_hangs_and_dies_and_the_sweep_goes_on_and_sync_catches_up(
    sweeps: Sweeps, mlflow_server: MlflowServer
) -> None:
    driver = sweeps.start(*ONE_BLOCK, "tracking=server", f"tracking.uri={mlflow_server.uri}")
    wait_for_cells(sweeps, driver, 1)
    mlflow_server.hang()  # connections are taken and never answered
    wait_for_cells(sweeps, driver, 4)  # measuring does not wait for them
    mlflow_server.kill()
    assert sweeps.ended(driver.wait(timeout=240)), sweeps.said()
    said = " ".join(sweeps.said().split())
    assert "measuring goes on" in said
    assert f"`specload sync results/{sweeps.sweep.name}` records them once it answers" in said
    recorded = sorted(result.cell for result in sweeps.results())
    assert len(recorded) == 9

    def sync() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(SPECLOAD), "sync", str(sweeps.sweep)],
            cwd=sweeps.folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env={**os.environ, "COLUMNS": "200", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"},
        )

    away = sync()
    assert away.returncode == 2
    assert "does not answer" in away.stderr
    mlflow_server.start()
    missing = len(recorded) - len(mlflow_server.cells())
    assert missing > 0
    for count in (missing, 0):
        done = sync()
        assert done.returncode == 0, done.stderr
        assert re.search(rf"\b{count} of 9 cells (was|were) missing", done.stdout)
        assert mlflow_server.cells() == recorded


JUMP = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t jump(void) { return access(JUMPED, F_OK) == 0 ? -7200 : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int failed = syscall(SYS_gettimeofday, now, zone);
    if (!failed) now->tv_sec += jump();
    return failed;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""
"""A library that sets the wall clock of every process back by two hours once a file is there."""


@pytest.fixture
def jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build the clock with")
    source, library, jumped = tmp_path / "jump.c", tmp_path / "jump.so", tmp_path / "jumped"
    source.write_text(JUMP)
    build = [compiler, "-shared", "-fPIC", "-O1", f'-DJUMPED="{jumped}"', "-o", str(library), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    return jumped.touch


def test_a_clock_that_jumps_back_changes_no_duration_and_no_order(
    sweeps: Sweeps, jump: Callable[[], None]
) -> None:
    driver = sweeps.start(*ONE_BLOCK, "tracking=disabled")
    wait_for_cells(sweeps, driver, 2)
    jump()
    assert sweeps.ended(driver.wait(timeout=240)), sweeps.said()
    results = sorted(sweeps.results(), key=lambda result: result.sequence)
    assert [result.sequence for result in results] == list(range(1, 10))
    starts = [result.started for result in results]
    assert starts != sorted(starts), "the clock did not jump while cells were measured"
    roles = [result.role for result in results]
    assert roles == ["opening"] * 3 + ["treatment"] * 3 + ["closing"] * 3
    for result in results:
        assert 0 < result.seconds < 240
        assert result.metrics["throughput/total_tok_s"]
        assert result.metrics["throughput/total_tok_s"] > 0
    assert (sweeps.sweep / "report.html").exists()
