"""From points to arms: canonical drafters, duplicates, baselines, refusals."""

from dataclasses import asdict, replace

import pytest

from engines.base import Refusal
from engines.spec import Drafter, EngineConfig, Layout, Model
from orchestrator.arms import build_arms, drafter_of, engine_config, swept_keys
from orchestrator.errors import ConfigError
from orchestrator.schema import DecodeSchema, EngineStandardSchema, StrategySchema
from orchestrator.sweep import Point

MODEL = Model(name="m")


def point(*, method="eagle3", k=3, tp=1, concurrency=(1, 4), flags=None, **choices):
    drafter = {
        "method": method,
        "k": k,
        "model": None,
        "draft_tp": None,
        "acceptance": {"alpha": None},
        "stateful": False,
        "kv": "natural",
        "loaded_only": False,
        "options": {},
    }
    config = {
        "engine": {
            "name": "e",
            "python": None,
            "device": "emulated",
            "flags": flags or {},
            "env": {},
            "standard": asdict(EngineStandardSchema()),
        },
        "cache": asdict(StrategySchema()),
        "decode": asdict(DecodeSchema()),
        "drafter": drafter,
        "layout": {"tp": tp, "dp": 1, "pp": 1},
        "load": {"concurrency": list(concurrency) if isinstance(concurrency, tuple) else concurrency},
        "seed": 0,
        "results": "results",
    }
    words = {"drafter": method, "drafter.k": str(k), "layout": f"tp{tp}", **choices}
    return Point(config=config, choices=words)


def build(points, *, refusals=lambda config: (), devices=None):
    entries = [(p, engine_config(p.config, python=None, version="1", model=MODEL)) for p in points]
    return build_arms(entries, factors=swept_keys(points), refusals=refusals, devices=devices)


def labels(arms):
    return [arm.label for arm in arms]


def concurrencies(arm):
    return [level.concurrency for level in arm.levels]


def test_none_has_no_k():
    config = point(method="none", k=7).config
    assert drafter_of(config) == Drafter()


def test_repeated_baselines_are_one_arm_and_said_so():
    points = [point(method=method, k=k) for method in ("none", "eagle3") for k in (1, 3, 5, 7)]
    arms = build(points)
    assert labels(arms.allowed) == ["tp1/none", *(f"tp1/eagle3-k{k}" for k in (1, 3, 5, 7))]
    assert any("4 points are the same arm tp1/none" in note for note in arms.notes)


def test_levels_given_as_swept_scalars_merge_into_the_arm():
    points = [point(k=k, concurrency=c) for k in (3, 7) for c in (16, 1, 4)]
    arms = build(points)
    assert [concurrencies(arm) for arm in arms.allowed] == [[1, 4, 16]] * 3
    assert arms.notes == ()
    assert arms.allowed[1].factors == {"drafter.k": "3"}


def test_list_and_scalar_mix():
    arms = build([point(concurrency=(1, 4)), point(concurrency=64)])
    assert [concurrencies(arm) for arm in arms.allowed] == [[1, 4, 64]] * 2


def test_a_baseline_for_each_pair_with_the_union_of_levels():
    points = [
        point(tp=1, k=3, concurrency=(1,)),
        point(tp=1, k=7, concurrency=(8,)),
        point(tp=2, k=3, concurrency=(4,)),
    ]
    arms = build(points).allowed
    assert labels(arms) == ["tp1/none", "tp1/eagle3-k3", "tp1/eagle3-k7", "tp2/none", "tp2/eagle3-k3"]
    assert concurrencies(arms[0]) == [1, 8]
    assert concurrencies(arms[3]) == [4]
    assert arms[0].pair_key == arms[1].pair_key != arms[3].pair_key
    assert arms[0].factors == {"drafter.k": "0", "layout": "tp1"}


def test_a_drafter_with_options_goes_by_its_name_too():
    other = point(drafter="by_batch")
    other.config["drafter"]["options"] = {"schedule": [[1, 8, 3]]}
    arms = build([point(), other]).allowed
    assert labels(arms) == ["tp1/none", "tp1/eagle3-k3", "tp1/eagle3-k3 drafter=by_batch"]


def test_swept_flags_make_pairs_and_labels():
    points = [
        point(flags={"block_size": size}, **{"engine.flags.block_size": str(size)}) for size in (16, 32)
    ]
    arms = build(points).allowed
    assert labels(arms) == [
        f"tp1/{who} block_size={size}" for size in (16, 32) for who in ("none", "eagle3-k3")
    ]
    assert len({arm.pair_key for arm in arms}) == 2


def test_refused_arms_keep_their_reason_and_the_others_go_on():
    def refusals(config: EngineConfig):
        return (Refusal(rule="k_limit", reason="K is at most 5"),) if config.drafter.k > 5 else ()

    arms = build([point(k=3), point(k=7)], refusals=refusals)
    assert labels(arms.allowed) == ["tp1/none", "tp1/eagle3-k3"]
    assert [(entry.arm.label, entry.rule, entry.reason) for entry in arms.refused] == [
        ("tp1/eagle3-k7", "k_limit", "K is at most 5")
    ]


def test_a_refused_baseline_refuses_its_treatments():
    def refusals(config: EngineConfig):
        odd = config.layout.tp == 4 and config.drafter.is_none
        return (Refusal(rule="heads", reason="9 heads do not divide by 4"),) if odd else ()

    arms = build([point(tp=1), point(tp=4)], refusals=refusals)
    assert labels(arms.allowed) == ["tp1/none", "tp1/eagle3-k3"]
    assert [(entry.rule, entry.arm.label) for entry in arms.refused] == [("baseline", "tp4/eagle3-k3")]
    assert "9 heads do not divide by 4" in arms.refused[0].reason


def test_every_arm_refused_is_an_error_that_lists_the_reasons():
    def refusals(config: EngineConfig):
        return (Refusal(rule="method", reason="cannot run eagle3"),)

    with pytest.raises(ConfigError, match=r"every arm .* refused.*tp1/eagle3-k3: cannot run eagle3"):
        build([point()], refusals=refusals)


def test_more_devices_than_the_machine_offers():
    arms = build([point(tp=1), point(tp=4)], devices=2)
    assert [(entry.arm.label, entry.rule) for entry in arms.refused] == [("tp4/eagle3-k3", "devices")]
    with pytest.raises(ConfigError, match="needs 4 devices and this machine offers 2"):
        build([point(tp=4)], devices=2)


def test_a_layout_that_does_not_fill_the_slice_is_refused():
    arms = build([point(tp=2), point(tp=3)])
    assert labels(arms.allowed) == ["tp3/none", "tp3/eagle3-k3"]
    assert {entry.rule for entry in arms.refused} == {"slice"}


def test_a_smaller_layout_that_fills_the_slice_is_allowed():
    assert build([point(tp=1), point(tp=2), point(tp=4)]).refused == ()


def test_a_drafter_without_k_names_the_key():
    with pytest.raises(ValueError, match=r"set drafter\.k"):
        build([point(k=0)])


def test_paths_are_places_and_digests_are_content():
    model = Model(name="m", path="/a", digest="d" * 64)
    config = EngineConfig(engine="e", version="1", model=model, layout=Layout(tp=2), python="/x/python")
    moved = replace(config, model=replace(model, path="/b"), python="/y/python")
    other = replace(config, model=replace(model, digest="e" * 64))
    assert config.digest == moved.digest != other.digest
    unnamed = replace(config, model=replace(model, digest=None))
    assert unnamed.digest != replace(unnamed, model=replace(model, digest=None, path="/b")).digest
    draft = Drafter(method="draft_model", k=2, model="/m/agree60", model_digest="f" * 64)
    assert (
        replace(config, drafter=draft).digest == replace(config, drafter=replace(draft, model="/n/q")).digest
    )
    assert draft.label == "draft-model-k2-agree60"
