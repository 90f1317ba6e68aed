import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engines.base import Command
from engines.process import EngineProcess

# Starts EngineProcess, as a Ray worker would, and waits to be killed.
OWNER = """
import sys, time
from pathlib import Path
from engines.base import Command
from engines.process import EngineProcess
command = Command(argv=("/bin/sh", "-c", sys.argv[1]), env={"PATH": "/usr/bin:/bin"}, cwd=Path(sys.argv[2]))
process = EngineProcess.start(command, Path(sys.argv[2]) / "engine.log")
print(process.pid, flush=True)
time.sleep(600)
"""
TREE = "sleep 600 & setsid sleep 600 & echo ready; wait"
DEAF_TREE = "trap '' TERM; sleep 600 & setsid sleep 600 & echo ready; wait; wait"


def command(script: str, cwd: Path) -> Command:
    return Command(argv=("/bin/sh", "-c", script), env={"PATH": os.environ["PATH"]}, cwd=cwd)


def wait_for(process: EngineProcess, text: str = "ready") -> None:
    deadline = time.monotonic() + 15
    while text not in process.log_tail():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_end(process: EngineProcess) -> int:
    deadline = time.monotonic() + 15
    while (code := process.returncode()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return code


def living(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[EngineProcess]]:
    processes: list[EngineProcess] = []
    yield processes
    for process in processes:
        process.stop(0.1)


def tree_of(process: EngineProcess, count: int) -> list[int]:
    deadline = time.monotonic() + 15
    while len(pids := [member.pid for member in process.tree()]) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return pids


def test_a_hearing_engine_ends_gracefully(tmp_path: Path, started: list[EngineProcess]) -> None:
    process = EngineProcess.start(command(TREE, tmp_path), tmp_path / "logs" / "engine.log")
    started.append(process)
    wait_for(process)
    pids = tree_of(process, 3)
    assert process.pid in pids
    assert process.returncode() is None
    report = process.stop(10.0)
    assert (report.graceful, report.killed, report.survivors) == (True, 0, 0)
    assert report.seconds < 10.0
    assert process.returncode() == -signal.SIGTERM
    assert living(pids) == []
    assert process.tree() == []
    assert process.stop(10.0) is report


def test_a_deaf_engine_is_killed_with_all_it_started(tmp_path: Path, started: list[EngineProcess]) -> None:
    process = EngineProcess.start(command(DEAF_TREE, tmp_path), tmp_path / "engine.log")
    started.append(process)
    wait_for(process)
    pids = tree_of(process, 3)
    report = process.stop(0.2)
    assert (report.graceful, report.killed, report.survivors) == (False, 3, 0)
    assert process.returncode() == -signal.SIGKILL
    assert living(pids) == []


@pytest.mark.parametrize("code", [0, 3])
def test_an_engine_that_ended_by_itself_has_its_code_and_log(
    tmp_path: Path, started: list[EngineProcess], code: int
) -> None:
    script = f"for line in 1 2 3 4; do echo out $line; done; echo error >&2; exit {code}"
    process = EngineProcess.start(command(script, tmp_path), tmp_path / "engine.log")
    started.append(process)
    assert wait_for_end(process) == code
    assert process.log_tail(2) == "out 4\nerror"
    report = process.stop(5.0)
    assert (report.graceful, report.killed, report.survivors) == (True, 0, 0)


def test_what_an_ended_engine_leaves_behind_is_taken_down(
    tmp_path: Path, started: list[EngineProcess]
) -> None:
    process = EngineProcess.start(
        command("sleep 600 & setsid sleep 600 & sleep 0.2; echo ready; kill -9 $$", tmp_path),
        tmp_path / "engine.log",
    )
    started.append(process)
    pids = tree_of(process, 3)
    assert wait_for_end(process) == -9
    report = process.stop(5.0)
    assert report.survivors == 0
    assert living(pids) == []


@pytest.mark.parametrize("victim", ["outer", "inner"])
def test_a_killed_guard_ends_the_engine(tmp_path: Path, started: list[EngineProcess], victim: str) -> None:
    process = EngineProcess.start(command(DEAF_TREE, tmp_path), tmp_path / "engine.log")
    started.append(process)
    wait_for(process)
    pids = tree_of(process, 3)
    inner = psutil.Process(process.pid).ppid()
    os.kill(psutil.Process(inner).ppid() if victim == "outer" else inner, signal.SIGKILL)
    assert wait_for_end(process) == -9
    report = process.stop(5.0)
    assert report.survivors == 0
    assert living(pids) == []


def test_the_death_of_the_owner_ends_the_engine(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, TREE, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    engine = int(owner.stdout.readline())
    pids = [engine, *(child.pid for child in psutil.Process(engine).children(recursive=True))]
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 15
    while living(pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_forgotten_process_object_ends_its_engine(tmp_path: Path) -> None:
    process = EngineProcess.start(command(TREE, tmp_path), tmp_path / "engine.log")
    wait_for(process)
    pids = tree_of(process, 3)
    with process:
        pass
    assert living(pids) == []


def test_an_engine_that_cannot_be_executed_says_so_in_its_log(
    tmp_path: Path, started: list[EngineProcess]
) -> None:
    nowhere = Command(argv=("/nowhere/python", "-m", "x"), env={}, cwd=tmp_path)
    process = EngineProcess.start(nowhere, tmp_path / "engine.log")
    started.append(process)
    assert wait_for_end(process) == 127
    assert "cannot execute /nowhere/python" in process.log_tail()


def test_the_log_of_an_earlier_start_is_kept_but_is_not_this_ones(
    tmp_path: Path, started: list[EngineProcess]
) -> None:
    for word in ("first", "second"):
        process = EngineProcess.start(command(f"echo {word}", tmp_path), tmp_path / "engine.log")
        started.append(process)
        wait_for_end(process)
    assert process.log_tail() == "second"
    assert (tmp_path / "engine.log").read_text() == "first\nsecond\n"


def test_a_huge_log_is_read_from_its_end(tmp_path: Path, started: list[EngineProcess]) -> None:
    script = "yes 'a line of an engine that talks a lot' | head -c 3000000; echo; echo last"
    process = EngineProcess.start(command(script, tmp_path), tmp_path / "engine.log")
    started.append(process)
    wait_for_end(process)
    tail = process.log_tail(1000).splitlines()
    assert len(tail) == 1000
    assert tail[-1] == "last"


def test_cores_and_environment_reach_the_whole_tree(tmp_path: Path, started: list[EngineProcess]) -> None:
    core = min(os.sched_getaffinity(0))
    script = (
        "import os, subprocess, sys; print(dict(os.environ), flush=True); subprocess.run(['sleep', '600'])"
    )
    order = Command(
        argv=(sys.executable, "-S", "-c", script),
        env={"PATH": os.environ["PATH"], "ONLY": "this"},
        cwd=tmp_path,
    )
    process = EngineProcess.start(order, tmp_path / "engine.log", cpus=(core,))
    started.append(process)
    wait_for(process, "ONLY")
    assert "RAY" not in process.log_tail()
    for pid in tree_of(process, 2):
        assert os.sched_getaffinity(pid) == {core}


def test_binding_a_living_engine_reaches_every_thread_of_its_tree(
    tmp_path: Path, started: list[EngineProcess]
) -> None:
    threads = (
        "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); "
        "print('ready', flush=True)"
    )
    script = f'{sys.executable} -c "{threads}" & wait'
    process = EngineProcess.start(command(script, tmp_path), tmp_path / "log")
    started.append(process)
    wait_for(process)
    tree = process.tree()
    assert len(tree) == 2
    core = max(os.sched_getaffinity(0))
    process.bind(())
    assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(0)
    process.bind((core,))
    tasks = [int(task.name) for found in tree for task in Path(f"/proc/{found.pid}/task").iterdir()]
    assert len(tasks) >= 3
    assert all(os.sched_getaffinity(task) == {core} for task in tasks)


@pytest.mark.parametrize("folder", ["a 0", "a'; echo foo", "a\n0", "ä"])
def test_odd_folders_are_only_names(tmp_path: Path, started: list[EngineProcess], folder: str) -> None:
    odd = tmp_path / folder
    odd.mkdir()
    process = EngineProcess.start(command("pwd", odd), odd / "engine.log")
    started.append(process)
    assert wait_for_end(process) == 0
    assert process.log_tail() == str(odd)
