"""Whatever is killed, nothing of the engine's tree survives."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

GUARD = Path(__file__).parents[2] / "engines" / "guard.py"

# Holds the guard's standard input, as the real owner does, and passes on what the guard says.
OWNER = """
import subprocess, sys, time
guard = subprocess.Popen(
    [sys.executable, "-I", "-S", sys.argv[1]], stdin=subprocess.PIPE, start_new_session=True, env={}
)
print("outer", guard.pid, flush=True)
guard.stdin.write(sys.argv[2].encode() + b"\\n")
guard.stdin.flush()
time.sleep(600)
"""

# An engine with every way of slipping away: a plain child, a child in a session of its own, a daemon of a
# double fork. With `deaf` all of them ignore SIGTERM.
ENGINE = """
import os, signal, sys, time
deaf, folder = sys.argv[1] == "deaf", sys.argv[2]
if deaf:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
def settle(name):
    with open(os.path.join(folder, "." + name), "w") as file:
        file.write(str(os.getpid()))
    os.rename(os.path.join(folder, "." + name), os.path.join(folder, name))
    while True:
        time.sleep(600)
if os.fork() == 0:
    settle("plain")
if os.fork() == 0:
    os.setsid()
    settle("session")
middle = os.fork()
if middle == 0:
    os.setsid()
    if os.fork() == 0:
        settle("daemon")
    os._exit(0)
os.waitpid(middle, 0)
settle("engine")
"""
MEMBERS = ("plain", "session", "daemon", "engine")


@dataclass
class Chain:
    owner: "subprocess.Popen[str]"
    pids: dict[str, int]

    def kill(self, *names: str, number: int = signal.SIGKILL) -> None:
        for name in names:
            os.kill(self.pids[name], number)
        if "owner" in names:
            self.owner.wait()

    @property
    def below_owner(self) -> list[int]:
        return [pid for name, pid in self.pids.items() if name != "owner"]


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def assert_nothing_left(chain: Chain) -> None:
    wait_until(
        lambda: not any(map(lives, chain.below_owner)),
        f"end of { ({name: pid for name, pid in chain.pids.items() if lives(pid)}) }",
    )


def spell(folder: Path, hearing: str, **order: object) -> str:
    argv = [sys.executable, "-I", "-S", "-c", ENGINE, hearing, str(folder)]
    return json.dumps({"argv": argv, "env": {}, "cwd": str(folder), "cpus": [], "grace": 0.3, **order})


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Chain]]:
    chains: list[Chain] = []

    def started(hearing: str = "deaf") -> Chain:
        owner = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", OWNER, str(GUARD), spell(tmp_path, hearing)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a process group of its own, as a Ray worker has
        )
        chain = Chain(owner, {"owner": owner.pid})
        chains.append(chain)
        assert owner.stdout is not None
        for _ in range(3):
            word, pid = owner.stdout.readline().split()
            chain.pids[{"guard": "inner", "pid": "engine"}.get(word, word)] = int(pid)
        for name in MEMBERS:
            wait_until((tmp_path / name).exists, f"start of {name}")
            chain.pids[name] = int((tmp_path / name).read_text())
        return chain

    yield started
    for chain in chains:
        for pid in chain.pids.values():
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
        chain.owner.wait()
        assert chain.owner.stdout is not None
        chain.owner.stdout.close()


@pytest.mark.parametrize(
    "victims",
    [
        ("owner",),
        ("outer",),
        ("inner",),
        ("engine",),
        ("owner", "outer"),
        ("owner", "inner"),
        ("engine", "owner"),
        ("engine", "inner"),
        ("daemon", "owner"),
    ],
    ids="+".join,
)
def test_whoever_is_killed_nothing_survives(start: Callable[..., Chain], victims: tuple[str, ...]) -> None:
    chain = start()
    assert all(map(lives, chain.pids.values()))
    chain.kill(*victims)
    assert_nothing_left(chain)


def test_a_reaper_that_kills_the_owners_process_group_leaves_nothing(start: Callable[..., Chain]) -> None:
    chain = start()
    os.killpg(chain.pids["owner"], signal.SIGTERM)
    time.sleep(0.2)
    if chain.owner.poll() is None:
        os.killpg(chain.pids["owner"], signal.SIGKILL)
    chain.owner.wait()
    assert_nothing_left(chain)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("guard", ["outer", "inner"])
def test_a_guard_told_to_stop_leaves_nothing(start: Callable[..., Chain], guard: str, number: int) -> None:
    chain = start("hearing")
    chain.kill(guard, number=number)
    assert_nothing_left(chain)


def test_the_loss_of_a_worker_is_the_engines_own_business(start: Callable[..., Chain]) -> None:
    chain = start()
    chain.kill("daemon", "session")
    wait_until(lambda: not lives(chain.pids["session"]), "end of the worker")
    time.sleep(0.5)
    assert lives(chain.pids["engine"])
    assert lives(chain.pids["plain"])


def test_each_stage_is_in_a_session_of_its_own(start: Callable[..., Chain]) -> None:
    chain = start()
    sessions = {os.getsid(chain.pids[name]) for name in ("owner", "outer", "inner", "engine")}
    assert len(sessions) == 4


def run_guard(order: str, close: bool = False) -> tuple[int, list[list[str]], str]:
    """Run one guard to its end, with its lifeline kept open until then unless `close`."""
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", str(GUARD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert guard.stdin
    assert guard.stdout
    assert guard.stderr
    guard.stdin.write(order + "\n" if order else "")
    guard.stdin.flush()
    if close:
        guard.stdin.close()
    words, log = [line.split() for line in guard.stdout], guard.stderr.read()
    for pipe in (guard.stdin, guard.stdout, guard.stderr):
        pipe.close()
    return guard.wait(), words, log


def inner(words: list[list[str]]) -> list[list[str]]:
    """Return what the inner guard said, in its order; the outer one's word can come at any time."""
    return [line for line in words if line[0] != "guard"]


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", "0"), ("exit 3", "3"), ("kill -9 $$", "-9"), ("kill -15 $$", "-15")]
)
def test_it_reports_pid_and_exit_code(tmp_path: Path, script: str, code: str) -> None:
    rc, words, log = run_guard(spell(tmp_path, "", argv=["/bin/sh", "-c", f"echo started; {script}"]))
    assert [word for word, *_ in words].count("guard") == 1
    (word, _), *rest = inner(words)
    assert word == "pid"
    assert rest == [["exit", code], ["gone", "0", "0"]]
    assert log == "started\n"
    assert rc == 0


@pytest.mark.parametrize(("hearing", "killed"), [("deaf", "4"), ("hearing", "0")])
def test_it_counts_what_it_had_to_kill(start: Callable[..., Chain], hearing: str, killed: str) -> None:
    chain = start(hearing)
    chain.kill("outer", number=signal.SIGTERM)
    assert chain.owner.stdout is not None
    code = "-9" if hearing == "deaf" else "-15"
    assert chain.owner.stdout.readline().split() == ["exit", code]
    assert chain.owner.stdout.readline().split() == ["gone", killed, "0"]


def test_an_owner_gone_at_once_still_gets_a_regular_end(tmp_path: Path) -> None:
    _, words, _ = run_guard(spell(tmp_path, "", argv=["/bin/sleep", "600"]), close=True)
    assert inner(words)[1:] == [["exit", "-15"], ["gone", "0", "0"]]


def test_an_engine_that_cannot_be_executed_ends_with_127_and_the_reason(tmp_path: Path) -> None:
    _, words, log = run_guard(spell(tmp_path, "", argv=["/nowhere/engine"]))
    assert ["exit", "127"] in words
    assert "cannot execute /nowhere/engine" in log


def test_the_environment_folder_and_cores_are_what_was_ordered(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    script = "import os; print(dict(os.environ), os.getcwd(), os.sched_getaffinity(0), os.read(0, 1))"
    order = spell(
        tmp_path,
        "",
        argv=[sys.executable, "-I", "-S", "-c", script],
        env={"LC_ALL": "C", "A": "b c"},
        cpus=[core],
    )
    _, _, log = run_guard(order)
    assert log == f"{ ({'LC_ALL': 'C', 'A': 'b c'}) } {tmp_path} { ({core}) } b''\n"


def test_without_an_order_it_ends_at_once(tmp_path: Path) -> None:
    rc, words, log = run_guard("", close=True)
    assert (rc, words) == (1, [])
    assert "before it gave an order" in log
