"""Real vLLM accepts of every tiny drafter what its table of wrong tokens says, and answers as without it."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from engines.spec import Drafter
from engines.vllm_speculation import speculative_config
from engines.vllm_version import installed
from orchestrator.built_acceptance import FILE
from orchestrator.sweep import config_folder

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]


def option(name: str) -> Drafter:
    """The drafter of an option of the group `drafter`."""
    content = OmegaConf.to_container(OmegaConf.load(config_folder() / "drafter" / f"{name}.yaml"))
    return Drafter(**{key: content[key] for key in ("method", "k", "model", "options")})


BUILT = {
    name: option(name)
    for name in ("tiny_agree90", "tiny_eagle", "tiny_eagle3", "tiny_mtp", "tiny_medusa", "tiny_dflash")
}
BUILT["tiny_dflash at its longest"] = replace(BUILT["tiny_dflash"], k=7)
OTHERS = {name: option(name) for name in ("tiny_dynamic", "suffix", "tiny_ngram")}
# n-grams come last: they load a compiler, and no engine starts in a process that has loaded one.
NONE = "none"


@pytest.fixture(scope="module")
def drafted(vllm_python: str, tiny_models: Path) -> dict[str, Any]:
    """What each drafter did, all of them in one process: imports take longer than these engines."""
    drafters = {NONE: Drafter(), **BUILT, **OTHERS}
    if "arctic-inference" not in installed(vllm_python):
        del drafters["suffix"]  # `make engine-env SUFFIX=`: see below
    words = [f"{name}={json.dumps(speculative_config(drafter))}" for name, drafter in drafters.items()]
    script = str(Path(__file__).with_name("tiny_drafters.py"))
    answer = subprocess.run(
        [vllm_python, script, str(tiny_models), *words], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("name", BUILT)
def test_acceptance_is_what_was_built_in(drafted: dict[str, Any], tiny_models: Path, name: str) -> None:
    drafter = BUILT[name]
    folder = tiny_models / Path(drafter.model or "mtp").name
    rates = json.loads((folder / FILE).read_text(encoding="utf-8"))["rates"][str(drafter.k)]
    steps, accepted = drafted[name]["steps"], drafted[name]["accepted"]
    assert steps > 1000
    assert [count / steps for count in accepted] == pytest.approx(rates, abs=0.03)
    assert 1 + sum(accepted) / steps == pytest.approx(1 + sum(rates), rel=0.02)


@pytest.mark.parametrize("name", [*BUILT, *OTHERS])
def test_no_drafter_changes_an_answer(drafted: dict[str, Any], name: str) -> None:
    if name not in drafted:
        pytest.skip("no arctic-inference in the engine environment: run `make engine-env`")
    # The model with layers that draft walks through the same cycle as the other one.
    assert drafted[name]["answer"] == drafted[NONE]["answer"]
    assert len(set(drafted[NONE]["answer"])) == 200


def test_what_looks_tokens_up_drafts_where_it_finds_them(drafted: dict[str, Any]) -> None:
    assert drafted["tiny_ngram"]["steps"] > 0
    if "suffix" in drafted:
        # The trees remember what other answers went through.
        assert sum(drafted["suffix"]["accepted"]) > 100


def test_a_length_by_batch_size_is_the_short_one_in_a_large_batch(drafted: dict[str, Any]) -> None:
    accepted = drafted["tiny_dynamic"]["accepted"]
    assert accepted[0] > 1000
    assert accepted[1] < 0.1 * accepted[0]  # sixteen answers at once, until the last of them end
