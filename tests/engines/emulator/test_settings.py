"""What the adapter refuses, and the command it writes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.base import Site
from engines.emulator import EMULATOR_VERSION
from engines.emulator.adapter import EmulatorEngine
from engines.emulator.drafters import DEFAULT_ALPHA, rates_of
from engines.emulator.faults import Failure
from engines.emulator.settings import Flags, flags_of
from engines.errors import EngineConfigError
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import CacheStrategy, Decode

ENGINE = EmulatorEngine()
SITE = Site(port=8123, directory=Path("/somewhere/engine-7"))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"gpuu": "h100"}, "engine.flags.gpuu is no setting"),
        ({"gpu": "h1000"}, "engine.flags.gpu is 'h1000'.*a100.*h100"),
        ({"cost": "magic"}, "roofline, table"),
        ({"time_scale": 0}, "engine.flags.time_scale is 0"),
        ({"time_scale": True}, "engine.flags.time_scale is True"),
        ({"max_num_seqs": 0}, "engine.flags.max_num_seqs is 0"),
        ({"block_size": 16.5}, "engine.flags.block_size is 16.5"),
        ({"gpu_memory_utilization": 1.2}, "engine.flags.gpu_memory_utilization is 1.2"),
        ({"enable_prefix_caching": "yes"}, "engine.flags.enable_prefix_caching is 'yes'"),
        ({"kv_tokens": -1}, "engine.flags.kv_tokens is -1"),
        ({"noise": {"stepp": 0.1}}, "engine.flags.noise.stepp is no setting"),
        ({"noise": {"step": 3}}, "step is 3"),
        ({"noise": None}, "engine.flags.noise is None"),
        ({"fail": {"at": "noon"}}, "at is 'noon'"),
        ({"fail": {}}, "engine.flags.fail"),
        ({"fail": "mid"}, "engine.flags.fail is 'mid'"),
        ({"fail": [{"at": "mid"}, "start"]}, "engine.flags.fail is "),
        ({"fail": [{"at": "mid", "k": "3"}]}, "k is '3'"),
    ],
)
def test_bad_flags_are_named(emulated, flags: dict[str, Any], words: str):
    with pytest.raises(EngineConfigError, match=words):
        ENGINE.command(emulated(**flags), SITE)


@pytest.mark.parametrize(
    ("drafter", "words"),
    [
        (Drafter(method="medusa", k=3), "drafter.method is 'medusa'.*eagle3"),
        (Drafter(method="draft_model", k=3, model="gpt-x"), "drafter.model is 'gpt-x'.*llama-3.2-1b"),
        (
            Drafter(method="ngram", k=3, options={"prompt_lookup": 3}),
            "drafter.options.prompt_lookup is unknown",
        ),
        (Drafter(method="ngram", k=3, options={"alpha": 1.5}), "drafter.options.alpha is 1.5"),
    ],
)
def test_bad_drafters_are_named(emulated, drafter: Drafter, words: str):
    with pytest.raises(EngineConfigError, match=words):
        ENGINE.command(emulated(drafter=drafter), SITE)


def test_an_unknown_model_is_named_with_the_known_ones(emulated):
    config = emulated(model="llama-9")
    with pytest.raises(EngineConfigError, match=r"'llama-9'.*llama-3\.1-8b"):
        ENGINE.command(config, SITE)
    assert [refusal.rule for refusal in ENGINE.refusals(config)] == ["emulator_settings"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"layout": Layout(pp=2)}, "emulator_pp"),
        ({"layout": Layout(expert_parallel=True)}, "emulator_experts"),
        ({"layout": Layout(tp=3)}, "emulator_heads"),
        ({"layout": Layout(tp=2), "drafter": Drafter(), "flags": {"cost": "table"}}, "emulator_table"),
        ({"layout": Layout(), "flags": {"cost": "table"}}, "emulator_table"),
        (
            {"layout": Layout(), "drafter": Drafter(), "flags": {"cost": "table", "gpu": "l4"}},
            "emulator_table",
        ),
        (
            {"drafter": Drafter(method="free", k=7), "flags": {"max_num_batched_tokens": 7}},
            "emulator_step_budget",
        ),
        ({"device": "gpu"}, "emulator_device"),
        ({"flags": {"gpu": "abacus"}}, "emulator_settings"),
    ],
)
def test_each_rule_refuses_its_case_and_lets_the_rest_pass(emulated, change: dict[str, Any], rule: str):
    allowed = emulated("free", 3, layout=Layout(tp=2))
    assert ENGINE.refusals(allowed) == ()
    refused = ENGINE.refusals(replace(allowed, **change))
    assert rule in [refusal.rule for refusal in refused]
    assert all(refusal.reason for refusal in refused)


def test_the_table_takes_what_it_was_fitted_to(emulated):
    assert ENGINE.refusals(emulated("eagle", 3, cost="table")) == ()
    assert ENGINE.refusals(emulated(cost="table", gpu="h100", layout=Layout(dp=2))) == ()


def test_defaults_are_what_serving_has():
    flags = Flags.of({})
    assert (flags.gpu, flags.time_scale, flags.block_size, flags.cost) == ("h100", 1.0, 16, "roofline")
    assert (flags.max_num_seqs, flags.max_num_batched_tokens) == (256, 2048)
    assert flags.noise.step > 0
    assert flags.fail == ()


def test_nested_flags_become_values(emulated):
    flags = flags_of(emulated(fail={"at": "mid", "after_tokens": 3}, noise={"step": 0.1}))
    assert flags.fail == (Failure(at="mid", after_tokens=3),)
    assert (flags.noise.step, flags.noise.start) == (0.1, Flags().noise.start)


def test_default_acceptance_is_documented_for_every_drafter(emulated):
    for method, alpha in DEFAULT_ALPHA.items():
        assert rates_of(Drafter(method=method, k=2)) == (alpha, alpha**2)
        ENGINE.command(emulated(method, 2), SITE)
    assert rates_of(Drafter()) == ()


def test_command_is_complete_and_says_which_start_it_is(emulated):
    config = replace(emulated("eagle3", 3), env={"EXTRA": "1"})
    command = ENGINE.command(config, SITE)
    assert command.argv[1:3] == ("-m", "engines.emulator")
    arguments = dict(zip(command.argv[3::2], command.argv[4::2], strict=True))
    assert arguments["--host"] == "127.0.0.1"
    assert arguments["--port"] == "8123"
    assert arguments["--start"] == "engine-7"
    assert EngineConfig.from_dict(json.loads(arguments["--config"])) == config
    assert set(command.env) == {"PATH", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "EXTRA"}
    assert command.cwd == SITE.directory


def test_identity_and_capabilities():
    assert ENGINE.name == "emulator"
    assert ENGINE.version(None) == ENGINE.version("/no/such/python") == EMULATOR_VERSION
    assert EMULATOR_VERSION.startswith("emulated")
    capabilities = ENGINE.capabilities
    assert capabilities.emulated
    assert capabilities.cache_salt
    assert capabilities.cache_reset
    assert capabilities.request_options == {"ignore_eos": True, "temperature": 0}


@pytest.mark.parametrize(
    ("log", "code", "cause"),
    [
        ("ERROR out of memory: llama needs 141.1 GB", 1, "out_of_memory"),
        ("ERROR cannot listen: [Errno 98] Address already in use", 1, "port_in_use"),
        ("ERROR bad setting: model.name is 'x', an unknown model to the emulator", 2, "missing_model"),
        ("ERROR bad setting: engine.flags.gpu is 'x'", 2, "bad_flag"),
        ("Traceback (most recent call last):\nRuntimeError: injected", 1, "died"),
        ("", -9, "died"),
    ],
)
def test_logs_are_classified(log: str, code: int, cause: str):
    assert ENGINE.classify(log, code) == cause


def test_no_folder_is_needed_for_an_emulated_model(emulated):
    assert emulated().model == Model(name="llama-3.1-8b", max_context=4096)


def test_faults_strike_the_draft_length_they_name(emulated):
    flags = flags_of(emulated(fail=[{"at": "mid", "k": 3}, {"at": "start", "k": 5}]))
    assert [fault and fault.at for fault in map(flags.failure, (0, 3, 5))] == [None, "mid", "start"]
    everywhere = flags_of(emulated(fail={"at": "start"})).failure(7)
    assert everywhere is not None


def test_cache_and_decode_settings_are_flags_where_the_emulator_has_a_model_of_them(emulated):
    arm = replace(
        emulated(),
        cache=CacheStrategy(prefix_caching=False, block_size=32),
        decode=Decode(max_num_seqs=8, max_num_batched_tokens=512, chunked_prefill=True),
    )
    flags = flags_of(arm)
    assert (flags.enable_prefix_caching, flags.block_size) == (False, 32)
    assert (flags.max_num_seqs, flags.max_num_batched_tokens) == (8, 512)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"cache": CacheStrategy(kv_dtype="fp8")},
            "cache.kv_dtype is 'fp8'; the emulator has no model of it",
        ),
        ({"decode": Decode(chunked_prefill=False)}, "decode.chunked_prefill is False"),
        (
            {"flags": {"gpu": "h100", "block_size": 16}, "cache": CacheStrategy(block_size=16)},
            "engine.flags.block_size and cache.block_size both",
        ),
    ],
)
def test_a_setting_the_emulator_cannot_follow_is_refused(emulated, changes: dict[str, Any], words: str):
    with pytest.raises(EngineConfigError, match=words):
        flags_of(replace(emulated(), **changes))
