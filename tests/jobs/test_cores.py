"""Core leases: exclusive among living holders, shared only where there are too few."""

import os
import subprocess
import sys
from pathlib import Path

from jobs.cores import CoreLease, Cores

ALL = sorted(os.sched_getaffinity(0))


def test_engine_and_load_get_cores_of_their_own(tmp_path: Path) -> None:
    with CoreLease(engine=1, load=1, folder=tmp_path / "leases") as lease:
        cores = lease.cores
    assert cores == Cores(engine=(ALL[0],), load=(ALL[1],), oversubscribed=False)


def test_too_few_cores_are_shared_and_said_so(tmp_path: Path) -> None:
    with CoreLease(engine=len(ALL), load=1, folder=tmp_path / "leases") as lease:
        assert lease.cores == Cores(engine=tuple(ALL), load=tuple(ALL), oversubscribed=True)


def test_a_second_lease_gets_other_cores(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    with (
        CoreLease(engine=1, load=0, folder=folder) as first,
        CoreLease(engine=1, load=0, folder=folder) as second,
    ):
        assert not set(first.cores.engine) & set(second.cores.engine)


def test_a_killed_holder_frees_its_cores(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    code = (
        "import sys, time, pathlib; from jobs.cores import CoreLease\n"
        f"lease = CoreLease(engine={len(ALL)}, load=0, folder=pathlib.Path({str(folder)!r})).__enter__()\n"
        "print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with CoreLease(engine=1, load=0, folder=folder) as lease:
            assert lease.cores.oversubscribed
        holder.kill()
        holder.wait()
    with CoreLease(engine=1, load=0, folder=folder) as lease:
        assert not lease.cores.oversubscribed


def test_replicas_split_the_engine_cores() -> None:
    cores = Cores(engine=(0, 1, 2, 3), load=(4,), oversubscribed=False)
    assert [cores.of_replica(replica, 2) for replica in range(2)] == [(0, 1), (2, 3)]
    assert cores.of_replica(1, 8) == (0, 1, 2, 3)
