from dataclasses import replace

import pytest

from engines.emulator.assembly import step_cost
from engines.emulator.costs import PUBLISHED_H100_8B
from engines.emulator.hardware import GPUS
from engines.emulator.load import StepLoad
from engines.emulator.models import ARCHITECTURES
from engines.emulator.roofline import Roofline
from engines.emulator.settings import flags_of
from engines.spec import Drafter, Layout

PARAMETERS = {
    "llama-3.1-8b": 8.03e9,
    "llama-3.1-70b": 70.55e9,
    "llama-3.2-1b": 1.236e9,
    "llama-3.2-3b": 3.213e9,
    "qwen2.5-7b": 7.616e9,
    "qwen3-0.6b": 0.596e9,
    "qwen3-8b": 8.191e9,
    "qwen3-32b": 32.76e9,
}
"""Parameter counts that the models' publishers state."""


def load(batch: int, k: int = 0, context: int = 500, prefill: int = 0) -> StepLoad:
    return StepLoad(
        requests=batch,
        drafted=batch if k else 0,
        k=k,
        decode_tokens=batch * (k + 1),
        decode_context=batch * context,
        prefill_tokens=prefill,
        prefill_pairs=prefill * (prefill + 1) // 2,
    )


def seconds(config, work: StepLoad) -> float:
    return step_cost(config, flags_of(config)).seconds(work)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_shapes_give_the_published_sizes(name: str):
    assert ARCHITECTURES[name].parameters == pytest.approx(PARAMETERS[name], rel=0.002)


def test_kv_bytes_of_known_models():
    assert ARCHITECTURES["llama-3.1-8b"].kv_bytes(1) == 131_072
    assert ARCHITECTURES["llama-3.1-70b"].kv_bytes(8) == 40_960
    # 8 KV heads on 16 devices: each still keeps one.
    assert ARCHITECTURES["llama-3.1-70b"].kv_bytes(16) == 40_960


@pytest.mark.parametrize("k", [0, 1, 3, 5])
@pytest.mark.parametrize("batch", [1, 8, 32, 128])
def test_target_step_on_an_h100_agrees_with_the_published_fit(emulated, batch: int, k: int):
    # A free drafter isolates the target's part; both include the overhead.
    config = emulated("free", k, gpu="h100") if k else emulated(gpu="h100")
    work = load(batch, k)
    published = PUBLISHED_H100_8B
    measured = (
        published.kv * work.context + published.token * work.tokens + published.fixed + published.overhead
    )
    assert seconds(config, work) == pytest.approx(measured, rel=0.10)


def test_one_request_is_bound_by_reading_weights(emulated):
    # 7.5 G parameters in 2 bytes over 80 % of 2.039 TB/s, and 1.2 ms of scheduling.
    weights = ARCHITECTURES["llama-3.1-8b"].matrix_parameters * 2
    expected = weights / (0.8 * 2.039e12) + 1.2e-3
    assert seconds(emulated(gpu="a100"), load(1, context=10)) == pytest.approx(expected, rel=0.01)


def test_a_large_prefill_is_bound_by_compute(emulated):
    config = emulated(gpu="a100")
    flops = 2 * ARCHITECTURES["llama-3.1-8b"].matrix_parameters * 2048
    work = seconds(config, load(1, prefill=2048)) - seconds(config, load(1))
    assert work == pytest.approx(flops / (0.72 * 312e12), rel=0.05)


def test_drafting_reads_the_drafter_once_a_pass_and_not_once_a_request(emulated):
    def drafting(k: int, batch: int) -> float:
        eagle, free = emulated("eagle3", k), emulated("free", k)
        return seconds(eagle, load(batch, k)) - seconds(free, load(batch, k))

    assert drafting(6, 1) == pytest.approx(2 * drafting(3, 1), rel=0.01)
    # 32 times the requests cost far less than 32 times the drafting, but more than one.
    assert drafting(3, 1) < drafting(3, 32) < 2 * drafting(3, 1)


def test_a_draft_model_costs_more_than_a_head_and_a_head_more_than_nothing(emulated):
    work = load(8, 3)
    costs = [seconds(emulated(method, 3), work) for method in ("free", "ngram", "eagle3", "draft_model")]
    assert costs == sorted(costs)
    assert len(set(costs)) == 4


def test_tensor_parallelism_shortens_a_step_by_less_than_its_size(emulated):
    one = seconds(emulated(gpu="h100"), load(8))
    two = seconds(emulated(gpu="h100", layout=Layout(tp=2)), load(8))
    four = seconds(emulated(gpu="h100", layout=Layout(tp=4)), load(8))
    assert one > two > four
    assert two > one / 2
    assert four > two / 2


def test_tensor_parallelism_pays_less_without_nvlink(emulated):
    config = emulated(gpu="a100", layout=Layout(tp=2))
    nvlink = step_cost(config, flags_of(config))
    assert isinstance(nvlink, Roofline)
    pcie = replace(nvlink, gpu=replace(nvlink.gpu, link_bandwidth=32e9, link_latency=20e-6))
    for work in (load(1), load(32), load(1, prefill=2048)):
        assert pcie.seconds(work) > 1.05 * nvlink.seconds(work)


def test_an_unsharded_drafter_is_slower(emulated):
    def with_draft_tp(draft_tp: int) -> float:
        drafter = Drafter(method="draft_model", k=3, draft_tp=draft_tp)
        return seconds(emulated(drafter=drafter, layout=Layout(tp=4)), load(4, 3))

    assert with_draft_tp(1) > with_draft_tp(4)


def test_faster_gpus_are_faster(emulated):
    times = [
        seconds(emulated(gpu=name), load(16, 0))
        for name in ("l4", "a10", "l40s", "a100", "h100", "h200", "b200")
    ]
    assert times == sorted(times, reverse=True)


def test_less_compute_per_byte_turns_the_verdict_at_a_smaller_batch(emulated):
    def step_ratio(gpu: str) -> float:
        return seconds(emulated("free", 7, gpu=gpu), load(16, 7)) / seconds(emulated(gpu=gpu), load(16))

    def ridge(gpu: str) -> float:
        return GPUS[gpu].flops / GPUS[gpu].bandwidth

    by_ridge = sorted(GPUS, key=ridge, reverse=True)
    assert by_ridge[-1] == "rtx3090"
    # The fixed part of a step shades it a little between neighbours, not between the ends.
    assert step_ratio("l4") < step_ratio("h100") < step_ratio("a100") < step_ratio("rtx3090")
