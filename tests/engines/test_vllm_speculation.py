import json

import pytest

from engines.acceptance import Acceptance
from engines.errors import EngineConfigError
from engines.spec import Drafter
from engines.vllm_speculation import FREE_CLASS, speculation_words, speculative_config


def test_the_baseline_has_no_speculative_config() -> None:
    assert speculative_config(Drafter()) is None
    assert speculation_words(Drafter()) == ()


def test_ngram_takes_its_look_up_window() -> None:
    drafter = Drafter(method="ngram", k=3, options={"prompt_lookup_max": 4, "prompt_lookup_min": 2})
    assert speculative_config(drafter) == {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_max": 4,
        "prompt_lookup_min": 2,
    }


def test_a_draft_model_has_its_path_and_split() -> None:
    drafter = Drafter(method="draft_model", k=4, model="some/model", draft_tp=2)
    assert speculative_config(drafter) == {
        "method": "draft_model",
        "num_speculative_tokens": 4,
        "model": "some/model",
        "draft_tensor_parallel_size": 2,
    }


def test_the_free_drafter_is_a_class_with_unconditional_synthetic_rates() -> None:
    config = speculative_config(Drafter(method="free", k=3, acceptance=Acceptance(alpha=0.74)))
    assert config is not None
    assert config["method"] == "custom_class"
    assert config["model"] == FREE_CLASS
    assert config["rejection_sample_method"] == "synthetic"
    assert config["synthetic_acceptance_rates"] == pytest.approx([0.74, 0.5476, 0.405224])
    assert 1 + sum(config["synthetic_acceptance_rates"]) == pytest.approx(2.6928, abs=5e-5)


@pytest.mark.parametrize("method", ["eagle", "eagle3", "mtp", "medusa", "dflash"])
def test_other_methods_pass_through(method: str) -> None:
    drafter = Drafter(method=method, k=2, model="a/head", options={"quantization": "fp8"})
    assert speculative_config(drafter) == {
        "method": method,
        "num_speculative_tokens": 2,
        "model": "a/head",
        "quantization": "fp8",
    }


@pytest.mark.parametrize(
    ("drafter", "named"),
    [
        (Drafter(method="telepathy", k=3), "drafter.method is 'telepathy'"),
        (Drafter(method="ngram", k=3, options={"prompt_lookup": 3}), "drafter.options.prompt_lookup is"),
        (Drafter(method="ngram", k=3, model="x"), "drafter.model"),
        (Drafter(method="free", k=3, draft_tp=2), "drafter.draft_tp"),
    ],
)
def test_a_wrong_setting_is_named(drafter: Drafter, named: str) -> None:
    with pytest.raises(EngineConfigError, match=named):
        speculative_config(drafter)


def test_the_words_are_one_json_argument_and_ask_for_each_requests_drafts() -> None:
    flag, text, *more = speculation_words(Drafter(method="ngram", k=5))
    assert flag == "--speculative-config"
    assert more == ["--per-request-spec-decode-metrics", "summary"]
    assert json.loads(text) == {"method": "ngram", "num_speculative_tokens": 5}
