"""Which devices a slice's replicas get."""

from pathlib import Path

import pytest

from engines.registry import engine_named
from engines.spec import EngineConfig, Layout, Model
from jobs.cores import Cores
from jobs.fleet import Fleet, visible_devices

CORES = Cores(engine=(0, 1, 2, 3), load=(4,), oversubscribed=False)


def test_gpus_are_those_that_ray_made_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,5,7")
    assert visible_devices("GPU", 4) == ("2", "3", "5", "7")
    assert visible_devices("engine_slot", 4) == ()


def test_replicas_fill_the_slice_with_gpus_and_cores_of_their_own() -> None:
    config = EngineConfig(
        engine="vllm",
        version="0.32.0",
        model=Model(name="m", path="m"),
        layout=Layout(tp=2),
        python="venv/bin/python",
    )

    fleet = Fleet(
        engine_named("vllm"), config, name="run", devices=4, device_names=("2", "3", "5", "7"), cores=CORES
    )
    try:
        assert fleet.replicas == 2
        sites = [fleet.site(replica) for replica in range(2)]
        assert [site.devices for site in sites] == [("2", "3"), ("5", "7")]
        assert [site.cpus for site in sites] == [(0, 1), (2, 3)]
        assert {site.start_cpus for site in sites} == {(0, 1, 2, 3, 4)}
        assert sites[0].port != sites[1].port
        assert [site.directory.name for site in sites] == ["run-r0", "run-r1"]
        command = fleet.engine.command(config, sites[1])
        assert command.env["CUDA_VISIBLE_DEVICES"] == "5,7"
    finally:
        fleet.stop(grace=1.0)
        folder = Path(sites[0].directory).parent
        fleet.remove_files()
    assert not folder.exists()
