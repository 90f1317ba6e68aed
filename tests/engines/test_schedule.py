"""K by batch size: each engine's own spelling of one schedule, and who refuses it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engines.acceptance import Acceptance
from engines.base import Site
from engines.errors import EngineConfigError
from engines.registry import engine_named
from engines.schedule import ADAPTIVE, DYNAMIC, KRange, largest_k, listed_k
from engines.sglang_http import parse_counters
from engines.sglang_resolved import drafting_contradictions
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import Decode

RANGES = (
    KRange(first=1, last=8, k=5),
    KRange(first=9, last=32, k=2),
    KRange(first=33, last=None, k=0),
)
SITE = Site(port=1, directory=Path("/site"))


def config(engine: str, **changes: object) -> EngineConfig:
    plain = EngineConfig(
        engine=engine,
        version="1",
        model=Model(name="m", path="some/model"),
        drafter=Drafter(method="eagle3", k=3, model="some/head"),
        python=sys.executable,
        flags={"mem_fraction_static": 0.85} if engine == "sglang" else {},
        decode=Decode(max_num_seqs=64, cuda_graphs=None if engine == "sglang" else "piecewise"),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # the caller names the fields


def test_vllm_takes_ranges_of_batch_sizes():
    engine = engine_named("vllm")
    found = engine.by_batch_size(config("vllm"), RANGES)
    assert engine.refusals(found) == ()
    argv = engine.command(found, SITE).argv
    told = json.loads(argv[argv.index("--speculative-config") + 1])
    assert told["num_speculative_tokens"] == 5
    assert told[DYNAMIC] == [[1, 8, 5], [9, 32, 2], [33, 64, 0]]
    assert found.label == "tp1/eagle3-k5-by-batch-head"


def test_vllm_refuses_what_it_would_ignore():
    engine = engine_named("vllm")
    ranks = engine.by_batch_size(config("vllm", layout=Layout(dp=2)), RANGES)
    assert "vLLM drops" in engine.refusals(ranks)[0].reason
    suffix = config("vllm", drafter=Drafter(method="suffix", k=3, stateful=True))
    rules = [refusal.rule for refusal in engine.refusals(engine.by_batch_size(suffix, RANGES))]
    assert "vllm_dynamic_length" in rules


def test_sglang_takes_a_slot_for_each_least_batch_size():
    engine = engine_named("sglang")
    found = engine.by_batch_size(config("sglang"), RANGES)
    assert engine.refusals(found) == ()
    command = engine.command(found, SITE)
    words = " ".join(command.argv)
    assert "--speculative-adaptive --speculative-adaptive-config /site/adaptive.json" in words
    assert "--speculative-num-steps 5 --speculative-num-draft-tokens 6" in words
    assert json.loads(command.files["adaptive.json"]) == {
        "1": {"candidate_steps": [5]},
        "9": {"candidate_steps": [2]},
        "33": {"candidate_steps": [0]},
    }


@pytest.mark.parametrize(
    ("drafter", "message"),
    [
        (
            Drafter(method="ngram", k=5, stateful=True, options={ADAPTIVE: {"1": {"candidate_steps": [5]}}}),
            "no setting",
        ),
        (Drafter(method="mtp", k=3, options={ADAPTIVE: {"1": {"candidate_steps": [5]}}}), "set drafter.k"),
        (Drafter(method="mtp", k=3, options={ADAPTIVE: {"ema_alpha": 0.2}}), "a mapping such as"),
        (
            Drafter(
                method="mtp",
                k=3,
                acceptance=Acceptance(alpha=0.7),
                options={ADAPTIVE: {"1": {"candidate_steps": [3]}}},
            ),
            "forced acceptance",
        ),
    ],
)
def test_sglang_refuses_what_it_would_refuse_or_ignore(drafter, message):
    found = engine_named("sglang").refusals(config("sglang", drafter=drafter))
    assert message in " ".join(refusal.reason for refusal in found)


def test_sglang_is_held_to_the_schedule_and_its_counters_to_what_they_tell():
    found = engine_named("sglang").by_batch_size(config("sglang"), RANGES)
    resolved = {"speculative_num_draft_tokens": 6, "speculative_algorithm": "EAGLE3"}
    assert "switched that off" in drafting_contradictions(found, resolved)[0]
    assert drafting_contradictions(found, {**resolved, "speculative_adaptive": True}) == []
    text = (Path(__file__).parent / "pages" / "sglang_dp2_pp2.txt").read_text()
    assert parse_counters(text, time=0.0, k=5).knows("draft_tokens", "accepted_tokens")
    assert not parse_counters(text, time=0.0, k=5, fixed=False).knows("accepted_tokens")


@pytest.mark.parametrize("engine", ["trtllm", "endpoint"])
def test_an_engine_without_one_says_so(engine):
    with pytest.raises(EngineConfigError, match=r"one draft length|somebody else"):
        engine_named(engine).by_batch_size(config(engine), RANGES)


@pytest.mark.parametrize(
    "ranges",
    [
        (),
        (KRange(first=2, last=None, k=1),),
        (KRange(first=1, last=8, k=1),),
        (KRange(first=1, last=8, k=1), KRange(first=10, last=None, k=0)),
        (KRange(first=1, last=None, k=0),),
    ],
)
def test_a_schedule_has_no_gaps_and_drafts(ranges):
    with pytest.raises(EngineConfigError, match="without gaps"):
        largest_k(ranges)


def test_the_last_k_is_carried_on():
    listed = [[1, 8, 3], [17, 32, 1]]
    assert [listed_k(listed, size) for size in (1, 8, 12, 17, 99)] == [3, 3, 3, 1, 1]
