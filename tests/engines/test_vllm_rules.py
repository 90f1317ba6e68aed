"""vLLM's own rules: each has an example it lets pass and one it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines import vllm_rules
from engines.acceptance import Acceptance
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.vllm import VllmEngine
from engines.vllm_rules import VLLM_RULES

V2 = {"VLLM_USE_V2_MODEL_RUNNER": "1"}


def config(**changes: Any) -> EngineConfig:
    plain = EngineConfig(
        engine="vllm",
        version="0.32.0",
        model=Model(name="m", path="some/model"),
        python="/env/bin/python",
    )
    return replace(plain, **changes)


def refused(arm: EngineConfig) -> list[str]:
    return [refusal.rule for refusal in VllmEngine().refusals(arm)]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Packages of the engine's environment, as the probe would find them."""
    packages = {"vllm": "0.32.0"}
    monkeypatch.setattr(vllm_rules, "installed", lambda python: packages)
    return packages


def folder(path: Path, **facts: Any) -> str:
    path.mkdir()
    (path / "config.json").write_text(json.dumps(facts))
    return str(path)


@pytest.mark.parametrize(("device", "rules"), [("gpu", []), ("cpu", []), ("emulated", ["vllm_device"])])
def test_device(device: str, rules: list[str]) -> None:
    assert refused(config(device=device)) == rules


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"flags": {"block_size": 16}}, []),
        ({"flags": {"blocksize": 16}}, ["vllm_settings"]),
        ({"drafter": Drafter(method="telepathy", k=1)}, ["vllm_settings"]),
    ],
)
def test_settings(changes: dict[str, Any], rules: list[str]) -> None:
    assert refused(config(**changes)) == rules


@pytest.mark.parametrize("method", ["ngram_gpu", "dspark"])
def test_method_on_device(method: str) -> None:
    arm = config(drafter=Drafter(method=method, k=3), env=V2)
    assert refused(arm) == []
    assert refused(replace(arm, device="cpu")) == ["vllm_method_on_device"]


@pytest.mark.parametrize(
    ("method", "env", "rules"),
    [
        ("dspark", V2, []),
        ("dspark", {}, ["vllm_method_on_runner"]),
        ("eagle3", V2, []),
        ("eagle3", {}, []),
        ("medusa", {}, []),
        ("medusa", V2, ["vllm_method_on_runner"]),
    ],
)
def test_method_on_runner(method: str, env: dict[str, str], rules: list[str]) -> None:
    assert refused(config(drafter=Drafter(method=method, k=3, model="a/head"), env=env)) == rules


@pytest.mark.parametrize(
    ("method", "flag", "rules"),
    [("ngram", False, []), ("ngram", True, ["vllm_scheduling"]), ("eagle3", True, [])],
)
def test_scheduling(method: str, flag: bool, rules: list[str]) -> None:
    drafter = Drafter(method=method, k=3, model=None if method == "ngram" else "a/head")
    assert refused(config(drafter=drafter, flags={"async_scheduling": flag})) == rules


@pytest.mark.parametrize("method", ["draft_model", "eagle3", "medusa"])
def test_drafter_model(method: str) -> None:
    assert refused(config(drafter=Drafter(method=method, k=3, model="a/head"))) == []
    assert refused(config(drafter=Drafter(method=method, k=3))) == ["vllm_drafter_model"]


def test_drafter_folder(tmp_path: Path) -> None:
    there = Drafter(method="draft_model", k=3, model=folder(tmp_path / "draft"))
    assert refused(config(drafter=there)) == []
    absent = Drafter(method="draft_model", k=3, model=str(tmp_path / "absent"))
    assert refused(config(drafter=absent)) == ["vllm_drafter_folder"]


@pytest.mark.parametrize(
    ("draft_tp", "env", "rules"),
    [(None, {}, []), (2, {}, []), (1, {}, ["vllm_draft_tp_v1"]), (1, V2, [])],
)
def test_draft_tp_on_the_v1_runner(draft_tp: int | None, env: dict[str, str], rules: list[str]) -> None:
    drafter = Drafter(method="draft_model", k=3, model="a/model", draft_tp=draft_tp)
    assert refused(config(drafter=drafter, layout=Layout(tp=2), env=env)) == rules


@pytest.mark.parametrize(("heads", "rules"), [(4, []), (9, ["vllm_draft_heads"])])
def test_draft_heads(tmp_path: Path, heads: int, rules: list[str]) -> None:
    draft = folder(tmp_path / "draft", num_attention_heads=heads)
    drafter = Drafter(method="draft_model", k=3, model=draft)
    assert refused(config(drafter=drafter, layout=Layout(tp=2))) == rules


@pytest.mark.parametrize(
    ("facts", "k", "rules"),
    [
        ({"num_nextn_predict_layers": 1}, 3, []),
        ({"num_nextn_predict_layers": 2}, 4, []),
        ({"num_nextn_predict_layers": 2}, 1, []),
        ({"num_nextn_predict_layers": 2}, 3, ["vllm_mtp_depth"]),
        ({"hidden_size": 8}, 1, ["vllm_mtp_depth"]),
    ],
)
def test_mtp_depth(tmp_path: Path, facts: dict[str, int], k: int, rules: list[str]) -> None:
    target = folder(tmp_path / "target", **facts)
    assert refused(config(model=Model(name="m", path=target), drafter=Drafter(method="mtp", k=k))) == rules


@pytest.mark.parametrize(
    ("flag", "env", "rules"), [(False, {}, []), (True, V2, []), (True, {}, ["vllm_pipeline"])]
)
def test_pipeline(flag: bool, env: dict[str, str], rules: list[str]) -> None:
    assert refused(config(layout=Layout(pp=2), flags={"async_scheduling": flag}, env=env)) == rules


@pytest.mark.parametrize(
    ("method", "dp", "rules"),
    [("ngram", 1, []), ("ngram", 2, ["vllm_dynamic_length"]), ("custom_class", 1, ["vllm_dynamic_length"])],
)
def test_dynamic_length(method: str, dp: int, rules: list[str]) -> None:
    drafter = Drafter(
        method=method,
        k=3,
        model="a.b.C" if method == "custom_class" else None,
        options={"num_speculative_tokens_per_batch_size": [[1, 4, 3], [5, 64, 0]]},
    )
    assert refused(config(drafter=drafter, layout=Layout(dp=dp))) == rules


@pytest.mark.parametrize(
    ("method", "device", "alpha", "needed"),
    [
        ("ngram", "cpu", None, False),
        ("ngram", "cpu", 0.5, True),
        ("ngram", "gpu", 0.5, False),
        ("free", "gpu", 0.5, True),
        ("free", "cpu", None, True),
    ],
)
def test_needs_our_wheel(
    environment: dict[str, str], method: str, device: str, alpha: float | None, needed: bool
) -> None:
    acceptance = None if alpha is None else Acceptance(alpha=alpha)
    arm = config(drafter=Drafter(method=method, k=3, acceptance=acceptance), device=device)
    assert refused(arm) == (["vllm_needs_our_wheel"] if needed else [])
    environment["specload-vllm"] = "0.1.0"
    assert refused(arm) == []


def test_needs_suffix_trees(environment: dict[str, str]) -> None:
    arm = config(drafter=Drafter(method="suffix", k=8, stateful=True))
    assert refused(arm) == ["vllm_needs_suffix_trees"]
    environment["arctic-inference"] = "0.1.1"
    assert refused(arm) == []


@pytest.mark.parametrize(("facts", "rules"), [({"num_experts": 8}, []), ({"x": 1}, ["vllm_expert_parallel"])])
def test_expert_parallel(tmp_path: Path, facts: dict[str, int], rules: list[str]) -> None:
    target = folder(tmp_path / "target", **facts)
    layout = Layout(tp=2, expert_parallel=True)
    assert refused(config(model=Model(name="m", path=target), layout=layout)) == rules


def test_common_rules_are_asked_too(tmp_path: Path) -> None:
    target = folder(tmp_path / "target", num_attention_heads=9)
    arm = config(model=Model(name="m", path=target), layout=Layout(tp=2))
    assert refused(arm) == ["heads_divisible_by_tp"]


def test_names_are_unique() -> None:
    names = [rule.name for rule in VLLM_RULES]
    assert len(names) == len(set(names))
