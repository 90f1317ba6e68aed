"""Blocks: seeded, counterbalanced, opened and closed by every baseline."""

from engines.spec import Drafter, EngineConfig, Layout, Model
from jobs.load import LoadLevel
from orchestrator.blocks import schedule
from orchestrator.plan import Arm

LEVELS = tuple(LoadLevel(concurrency=c) for c in (1, 4, 16, 64))


def arms(ks=(1, 3, 5, 7), tps=(1, 2), levels=LEVELS):
    model = Model(name="m")
    found = []
    for tp in tps:
        for k in (0, *ks):
            drafter = Drafter(method="eagle3", k=k) if k else Drafter()
            config = EngineConfig(engine="e", version="1", model=model, drafter=drafter, layout=Layout(tp=tp))
            found.append(Arm(config=config, levels=levels))
    return found


def roles(block):
    return [run.role for run in block.runs]


def treatments(block):
    return [run.arm for run in block.runs if run.role == "treatment"]


def test_every_baseline_opens_and_closes():
    (block,) = schedule(arms(), blocks=1, seed=0)
    assert roles(block) == ["opening"] * 2 + ["treatment"] * 8 + ["closing"] * 2
    opening = [run.arm for run in block.runs[:2]]
    assert [run.arm for run in block.runs[-2:]] == opening[::-1]
    assert block.devices == 2


def test_treatments_go_forwards_and_backwards():
    first, second, third, _ = schedule(arms(), blocks=4, seed=0)
    assert treatments(second) == treatments(first)[::-1]
    assert sorted(treatments(third)) == sorted(treatments(first))
    assert treatments(third) != treatments(first)
    assert [run.arm for run in second.runs[:2]] == [run.arm for run in first.runs[:2]][::-1]


def test_levels_have_one_order_in_a_block_and_another_in_the_next():
    blocks = schedule(arms(), blocks=6, seed=0)
    orders = set()
    for block in blocks:
        assert len({run.levels for run in block.runs}) == 1
        assert sorted(block.runs[0].levels, key=lambda level: level.sort_key) == list(LEVELS)
        orders.add(block.runs[0].levels)
    assert len(orders) > 1


def test_an_arm_with_fewer_levels_keeps_the_order():
    some = [*arms(ks=(3,), tps=(1,)), *arms(ks=(3,), tps=(2,), levels=LEVELS[1:3])]
    for block in schedule(some, blocks=4, seed=3):
        full = block.runs[0].levels if len(block.runs[0].levels) == 4 else block.runs[1].levels
        for run in block.runs:
            assert run.levels == tuple(level for level in full if level in run.levels)


def test_the_seed_decides_and_nothing_else():
    assert schedule(arms(), blocks=4, seed=1) == schedule(arms(), blocks=4, seed=1)
    assert schedule(arms(), blocks=4, seed=1) == schedule(arms()[::-1], blocks=4, seed=1)
    assert schedule(arms(), blocks=4, seed=1) != schedule(arms(), blocks=4, seed=2)


def test_known_order():
    """Pinned: an order that changed between versions would make resumed sweeps mean something else."""
    model = Model(name="m")
    base = Arm(config=EngineConfig(engine="e", version="1", model=model), levels=LEVELS)
    _, block = schedule([base], blocks=2, seed=0)
    assert [level.concurrency for level in block.runs[0].levels] == [4, 64, 16, 1]
