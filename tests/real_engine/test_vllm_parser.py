"""vLLM's own parser takes every command line we write, and refuses what our rules refuse for its sake."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engines.acceptance import GEOMETRIC, MINIMUM_VARIANCE, Acceptance
from engines.base import Site
from engines.spec import Drafter, EngineConfig, Layout
from engines.vllm import VllmEngine
from engines.vllm_command import environment
from engines.vllm_flags import SWITCHES, VALUES
from engines.vllm_speculation import FREE_CLASS, METHODS
from tests.real_engine.grid import FEW, Grid, mixture_of_experts, with_mask_token

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

Parse = Callable[..., list[str | None]]

PARSED_ONLY = {"dspark"}
"""Methods of which the CPU build reads the line and makes no configuration: it has only the V1 runner."""

FORCED = (
    Acceptance(alpha=0.0),
    Acceptance(alpha=1.0),
    Acceptance(length=3.07, shape=GEOMETRIC),
    Acceptance(length=1.0, shape=MINIMUM_VARIANCE),
    Acceptance(length=4.0, shape=MINIMUM_VARIANCE),
    Acceptance(positions=(0.9, 0.9, 0.1)),
)

EXAMPLES = {
    "attention_backend": "CPU_ATTN",
    "block_size": 64,
    "compilation_config": {"mode": 0},
    "custom_histogram_buckets": {"inter_token_latency": [0.001, 0.01]},
    "dtype": "bfloat16",
    "gpu_memory_utilization": 0.5,
    "kv_cache_memory_bytes": 1_000_000_000,
    "max_num_batched_tokens": 4096,
    "max_num_seqs": 8,
    "num_gpu_blocks_override": 100,
    "optimization_level": 0,
    "performance_mode": "throughput",
    "prefix_caching_hash_algo": "sha256_cbor",
    "scheduling_policy": "priority",
    "uvicorn_log_level": "warning",
    "watermark": 0.01,
}


@pytest.fixture(scope="module")
def parse(vllm_python: str, tmp_path_factory: pytest.TempPathFactory) -> Parse:
    def run(configs: Sequence[EngineConfig], whole: Sequence[bool] | None = None) -> list[str | None]:
        site = Site(port=8100, directory=tmp_path_factory.mktemp("site"), cpus=(0,))
        lines = [
            [word for word in VllmEngine().command(config, site).argv[3:] if word != "serve"]
            for config in configs
        ]
        answer = subprocess.run(
            [vllm_python, str(Path(__file__).with_name("parse_lines.py"))],
            input=json.dumps(list(zip(lines, whole or [True] * len(lines), strict=True))),
            capture_output=True,
            text=True,
            env=environment(configs[0], site),
            check=False,
        )
        assert answer.returncode == 0, answer.stderr[-2000:]
        verdicts: list[str | None] = json.loads(answer.stdout)
        return verdicts

    return run


@pytest.fixture(scope="module")
def grids(tiny: EngineConfig, tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Grid]:
    """All options of `conf/`, on the CPU and as for GPUs."""
    made = tmp_path_factory.mktemp("checkpoints")
    checkpoints = {name: str(tiny_models / name) for name in ("eagle", "eagle3", "dflash", "medusa")}
    checkpoints |= {"draft_model": str(tiny_models / "draft60"), "custom_class": FREE_CLASS}
    checkpoints["pard"] = with_mask_token(made / "all-at-once", tiny_models / "draft60")
    checkpoints["peagle"] = with_mask_token(made / "head-at-once", tiny_models / "eagle3")
    experts = mixture_of_experts(made / "experts", tiny_models / "target")
    models = {
        "target": tiny.model,
        "mtp": replace(tiny.model, path=str(tiny_models / "mtp")),
        "experts": replace(tiny.model, path=experts),
    }
    return [Grid(engine, checkpoints, models) for engine in ("vllm_cpu", "vllm")]


def _tells_more(choices: dict[str, str], config: EngineConfig) -> bool:
    """Whether vLLM's whole configuration of a line is worth its time.

    What becomes of speculative settings depends on drafter and layout, of the others on themselves.
    """
    plain = choices.get("decode", "default") == "default" and choices.get("cache", "cold") == "cold"
    gpu_only = config.drafter.method in METHODS and METHODS[config.drafter.method].gpu_only
    few = choices.get("layout") == "tp1" and choices.get("drafter") in FEW
    return few or (plain and (config.device == "cpu" or gpu_only))


def test_every_line_that_the_configuration_can_produce_is_taken(
    parse: Parse, tiny: EngineConfig, grids: list[Grid], capsys: pytest.CaptureFixture[str]
) -> None:
    """Set SPECLOAD_WHOLE_GRID=1 for the whole product: minutes instead of seconds."""
    engine, site = VllmEngine(), Site(port=8100, directory=Path("/"), cpus=(0,))
    whole = os.environ.get("SPECLOAD_WHOLE_GRID") == "1"
    allowed: dict[tuple[str, ...], tuple[dict[str, str], EngineConfig]] = {}
    refused: Counter[str] = Counter()
    for grid in grids:
        for choices, config in grid.configs(str(tiny.python), tiny.version, whole=whole):
            reasons = engine.refusals(config)
            refused.update(reason.rule for reason in reasons[:1])
            if not reasons:
                allowed.setdefault(engine.command(config, site).argv[3:], (choices, config))
    for acceptance in FORCED:
        forced = replace(tiny, drafter=Drafter(method="free", k=3, acceptance=acceptance))
        allowed[engine.command(forced, site).argv[3:]] = ({"acceptance": acceptance.label}, forced)
    deep = [
        config.drafter.method not in PARSED_ONLY and (whole or _tells_more(choices, config))
        for choices, config in allowed.values()
    ]
    verdicts = parse([config for _, config in allowed.values()], deep)
    taken = Counter("taken" if verdict is None else "not taken" for verdict in verdicts)
    unexpected = {
        str(choices): verdict
        for (choices, _), verdict in zip(allowed.values(), verdicts, strict=True)
        if verdict
    }
    with capsys.disabled():
        told = (
            f"vLLM {tiny.version} took {taken['taken']} of {len(allowed)} different lines, and made its "
            f"configuration of {sum(deep)} of them"
        )
        sys.stdout.write(f"\n{told}; rules refused {refused.total()}: {dict(refused.most_common())}\n")
    assert unexpected == {}
    drafters = {config.drafter.method for _, config in allowed.values()}
    assert drafters >= set(METHODS) - {"mlp_speculator"}, "a drafter that never got past the rules"
    made = {config.drafter.method for (_, config), more in zip(allowed.values(), deep, strict=True) if more}
    assert made >= set(METHODS) - {"mlp_speculator"} - PARSED_ONLY, "a drafter that was never configured"
    assert taken["taken"] > 4000


def test_every_switch_and_many_values_are_flags_of_this_vllm(parse: Parse, tiny: EngineConfig) -> None:
    flags = [{name: state} for name in sorted(SWITCHES) for state in (True, False)]
    flags += [{name: value} for name, value in EXAMPLES.items()]
    verdicts = parse([replace(tiny, flags={**tiny.flags, **each}) for each in flags])
    # Some switches want hardware or a model that is not here; an argument parser's refusal is another matter.
    unknown = {
        str(each): verdict
        for each, verdict in zip(flags, verdicts, strict=True)
        if verdict and ("unrecognized" in verdict or "error: argument" in verdict)
    }
    assert unknown == {}
    assert set(EXAMPLES) <= VALUES


def test_every_value_flag_exists_in_this_vllm(vllm_python: str) -> None:
    script = (
        "import json; from vllm.entrypoints.launchers.cli_args import make_arg_parser as m;"
        "from vllm.utils.argparse_utils import FlexibleArgumentParser as P;"
        "print('OPTIONS', json.dumps([o for a in m(P())._actions for o in a.option_strings]))"
    )
    answer = subprocess.run([vllm_python, "-c", script], capture_output=True, text=True, check=True)
    line = next(line for line in answer.stdout.splitlines() if line.startswith("OPTIONS "))
    known = set(json.loads(line.removeprefix("OPTIONS ")))
    assert {name for name in VALUES | SWITCHES if "--" + name.replace("_", "-") not in known} == set()


def test_vllm_refuses_what_our_rules_refuse_for_its_sake(
    parse: Parse, tiny: EngineConfig, tiny_models: Path
) -> None:
    refused = {
        "heads_divisible_by_tp": replace(tiny, layout=Layout(tp=3)),
        "context_of_model": replace(tiny, model=replace(tiny.model, max_context=5000)),
        "vllm_drafter_folder": replace(
            tiny, drafter=Drafter(method="draft_model", k=2, model=str(tiny_models / "absent"))
        ),
        "vllm_drafter_model": replace(tiny, drafter=Drafter(method="draft_model", k=2)),
        "vllm_expert_parallel": replace(tiny, layout=Layout(expert_parallel=True)),
    }
    for rule, config in refused.items():
        assert rule in [refusal.rule for refusal in VllmEngine().refusals(config)]
    assert None not in parse(list(refused.values()))
