"""vLLM's counterfactual engines: their command lines, and an accepted and a refused example of each rule."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.acceptance import Acceptance
from engines.base import KVCapacity, Site
from engines.errors import EngineConfigError
from engines.spec import Drafter, EngineConfig, KVMatch, Layout, Model
from engines.vllm_command import vllm_command
from engines.vllm_counterfactual import COUNTERFACTUAL_RULES

NGRAM = Drafter(method="ngram", k=3)
LOADED = replace(NGRAM, loaded_only=True)
LENGTHS = {"num_speculative_tokens_per_batch_size": [[1, 8, 3]]}


def config(drafter: Drafter = LOADED, **changes: Any) -> EngineConfig:
    fields = {"model": Model(name="m", path="some/model"), "python": "python", "device": "cpu", **changes}
    return EngineConfig(engine="vllm", version="0.32.0", drafter=drafter, **fields)


MATCHED = config(NGRAM).matched_baseline()
EXAMPLES: dict[str, tuple[EngineConfig, EngineConfig]] = {
    "vllm_loaded_method": (config(), config(Drafter(method="medusa", k=3, loaded_only=True))),
    "vllm_loaded_ranks": (config(layout=Layout(tp=2)), config(layout=Layout(dp=2))),
    "vllm_loaded_contradiction": (config(), config(replace(LOADED, options=LENGTHS))),
    "vllm_kv_already_clamped": (MATCHED, replace(MATCHED, flags={"num_gpu_blocks_override": 100})),
}
"""Rule -> a configuration that it accepts, and one that it refuses."""


@pytest.mark.parametrize("rule", COUNTERFACTUAL_RULES, ids=lambda rule: rule.name)
def test_a_rule_accepts_and_refuses(rule: Any) -> None:
    accepted, refused = EXAMPLES[rule.name]
    assert rule.check(accepted) is None
    assert len(str(rule.check(refused)).split()) > 5


@pytest.mark.parametrize("rule", COUNTERFACTUAL_RULES, ids=lambda rule: rule.name)
def test_no_rule_minds_an_ordinary_engine(rule: Any) -> None:
    ordinary = config(Drafter(method="medusa", k=3, options=LENGTHS), layout=Layout(dp=2), device="gpu")
    assert rule.check(ordinary) is None


def test_a_drafter_that_never_drafts_has_nothing_to_accept() -> None:
    rule = next(rule for rule in COUNTERFACTUAL_RULES if rule.name == "vllm_loaded_contradiction")
    assert "nothing to accept" in str(rule.check(config(replace(LOADED, acceptance=Acceptance(alpha=0.5)))))


def speculation(argv: tuple[str, ...]) -> dict[str, Any]:
    return dict(json.loads(argv[argv.index("--speculative-config") + 1]))


def test_a_loaded_drafter_has_its_k_and_a_length_of_zero_at_every_batch_size(tmp_path: Path) -> None:
    found = speculation(vllm_command(config(), Site(port=1, directory=tmp_path)).argv)
    assert found["num_speculative_tokens"] == 3
    assert found["num_speculative_tokens_per_batch_size"] == [
        [1, 1, 0]
    ]  # the last range's K also holds above
    plain = speculation(vllm_command(config(NGRAM), Site(port=1, directory=tmp_path)).argv)
    assert "num_speculative_tokens_per_batch_size" not in plain


def test_a_matched_baseline_gets_the_blocks_of_one_rank(tmp_path: Path) -> None:
    """vLLM's own number of blocks is summed over ranks; its flag is one rank's."""
    capacity = KVCapacity(tokens=4000, block_size=16, blocks=250, ranks=2)
    matched = replace(MATCHED, layout=Layout(dp=2))
    argv = vllm_command(matched, Site(port=1, directory=tmp_path, kv=capacity)).argv
    assert argv[argv.index("--num-gpu-blocks-override") + 1] == "125"
    assert "--speculative-config" not in argv


@pytest.mark.parametrize("other", [config(NGRAM), config(NGRAM).baseline()])
def test_no_other_engine_is_clamped(other: EngineConfig, tmp_path: Path) -> None:
    site = Site(port=1, directory=tmp_path, kv=KVCapacity(tokens=4000, block_size=16, blocks=250))
    assert "--num-gpu-blocks-override" not in vllm_command(other, site).argv


def test_an_engine_without_blocks_cannot_be_matched(tmp_path: Path) -> None:
    site = Site(port=1, directory=tmp_path, kv=KVCapacity(tokens=4000, block_size=None))
    with pytest.raises(EngineConfigError, match="does not tell its KV blocks"):
        vllm_command(MATCHED, site)


def test_identities() -> None:
    treatment = config(NGRAM)
    matched = treatment.matched_baseline()
    assert matched.baseline() == treatment.baseline() != matched
    assert len({engine.digest for engine in (treatment, matched, matched.baseline(), config(LOADED))}) == 4
    assert (
        matched.digest == replace(matched, kv_match=KVMatch(arm=treatment.digest, drafter="renamed")).digest
    )
    assert (matched.is_baseline, matched.counterfactual) == (False, "kv_matched")
    assert (config().is_baseline, config().counterfactual) == (False, "loaded_only")
    assert (treatment.is_baseline, treatment.baseline().is_baseline) == (False, True)
    assert matched.label == "tp1/none-kv-matched-ngram-k3"
    assert config().label == "tp1/ngram-k3-loaded"
