"""A local Ray that does not come up at once."""

import threading
import time

import psutil
import pytest
import ray

from orchestrator.connection import connect
from orchestrator.plan import Cluster
from tests.cluster.conftest import line_of, lives

pytestmark = pytest.mark.cluster


def raylets() -> list[psutil.Process]:
    below = psutil.Process().children()
    return [process for process in below if lives(process) and "raylet/raylet" in line_of(process)]


class Worker:
    def name(self) -> str:
        return "worker"


def test_a_local_ray_starts_no_workers_that_no_block_will_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_prestart_worker_first_driver")
    assert connect(Cluster(address="", resource="slot", slots=1, cpus_per_device=1.0, load_cpus=1.0))
    try:
        environment = {"env_vars": {"RAY_worker_niceness": "0"}}  # as that of a block
        actor = ray.remote(Worker).options(num_cpus=0, runtime_env=environment).remote()
        assert ray.get(actor.name.remote()) == "worker"
        (raylet,) = raylets()
        workers = [line for line in map(line_of, raylet.children()) if line.startswith("ray::")]
        assert not [line for line in workers if "IDLE" in line], workers
        assert [line for line in workers if "Worker" in line], workers
    finally:
        ray.shutdown()


# Ray's own handles of the first start's processes, which it forgets unwaited
@pytest.mark.filterwarnings("ignore:.*Popen.__del__:pytest.PytestUnraisableExceptionWarning")
def test_a_local_ray_whose_first_node_is_lost_is_started_again_and_leaves_nothing_of_the_first():
    killed: list[psutil.Process] = []

    def kill_the_first() -> None:
        deadline = time.monotonic() + 120
        while not killed and time.monotonic() < deadline:
            for process in raylets():
                process.kill()
                killed.append(process)
            time.sleep(0.02)

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    before = set(psutil.Process().children())
    try:
        assert connect(Cluster(address="", resource="slot", slots=1, cpus_per_device=1.0, load_cpus=1.0))
        killer.join()
        assert len(killed) == 1
        assert ray.cluster_resources()["slot"] == 1
        assert len(raylets()) == 1
        servers = [process for process in psutil.Process().children() if "gcs_server" in line_of(process)]
        assert len(servers) == 1, "the first start's server is gone"
    finally:
        ray.shutdown()
    left = [process for process in psutil.Process().children() if process not in before and lives(process)]
    assert not left
