"""Results of `vllm bench serve`: levels, counting, what a failed request leaves behind."""

from collections.abc import Callable
from typing import Any

import pytest

from analysis.others.arms import OtherArm
from analysis.others.frame import others_frame
from analysis.others.requests import FIRST_IS_ONE
from analysis.others.run import OtherResultsError
from analysis.others.vllm_bench import OF_MEANS, WHOLE_RUN, matches, read
from analysis.others.vllm_detail import OF_SUMS, WINDOW
from analysis.others.window import Stream, steady

Make = Callable[..., dict[str, Any]]


def test_a_summary(make_drafted: Make) -> None:
    document = make_drafted(p95_ttft_ms=180.0)
    assert matches(document)
    (run,) = read(document, "a.json").runs
    assert (run.axis, run.level, run.start, run.model) == ("concurrency", 4.0, "a.json", "served")
    assert run.metrics["throughput/total_tok_s"] == pytest.approx(2416 / 4.4)
    assert run.metrics["fixed_work/total_tok_s"] == run.metrics["throughput/total_tok_s"]
    assert run.metrics["spec/mal"] == 2.7
    assert run.metrics["spec/acceptance_rate"] == pytest.approx(170 / 300)
    assert run.metrics["spec/acceptance_pos_3"] == 0.35
    assert run.metrics["latency/ttft_p95_ms"] == 180.0
    assert "latency/tpot_p95_ms" not in run.metrics
    assert (run.drafts, run.k, run.drafter) == (100, 3, None)
    assert "throughput/computed_tok_s" not in run.metrics, "whether prompts were cached is not told"


def test_its_itl_is_a_gap_between_chunks(make_vllm: Make) -> None:
    (run,) = read(make_vllm(), "a").runs
    assert run.metrics["latency/icl_p50_ms"] == 50.0
    assert run.metrics["latency/tpot_p50_ms"] == 20.0
    assert not any(name.startswith("latency/itl") for name in run.metrics)


def test_user_speed_from_sums_from_means_and_from_requests(make_vllm: Make) -> None:
    """16 x 50 tokens in 16 x 1 s; two answers of unlike length show how a mean of means differs."""
    (summed,) = read(make_vllm(), "a").runs
    assert summed.metrics["user/speed_tok_s"] == pytest.approx(50.0)
    assert summed.definitions["user/speed_tok_s"] == OF_SUMS
    assert summed.metrics["latency/e2el_p95_ms"] == pytest.approx(1100.0)
    assert summed.metrics["latency/decode_share"] == pytest.approx(1 / 1.1)
    bare = {key: value for key, value in make_vllm().items() if key != "latencies"}
    (mean,) = read(bare, "a").runs
    assert mean.metrics["user/speed_tok_s"] == pytest.approx(1e3 / 20.0)
    assert mean.definitions["user/speed_tok_s"] == OF_MEANS
    detailed = make_vllm(
        max_concurrency=1, start_times=[7.0, 9.0], input_lens=[100, 100], output_lens=[101, 11],
        ttfts=[0.1, 0.1], itls=[[0.05] * 20, [0.1] * 10],
    )  # fmt: skip
    (pooled,) = read(detailed, "a").runs
    assert pooled.metrics["user/speed_tok_s"] == pytest.approx(110 / 2.0)
    assert pooled.definitions["user/speed_tok_s"] == FIRST_IS_ONE
    assert pooled.metrics["latency/tpot_p50_ms"] == pytest.approx((10.0 + 100.0) / 2)


def test_a_chunk_is_no_token(make_vllm: Make) -> None:
    """Chunks 8.72 ms apart with 2.55 tokens each are 3.42 ms a token, and 292 tokens a second."""
    chunks = 200
    tokens = 1 + round(2.55 * chunks)
    detailed = make_vllm(
        start_times=[0.0], input_lens=[100], output_lens=[tokens], ttfts=[0.2], itls=[[8.72e-3] * chunks]
    )
    (run,) = read(detailed, "a").runs
    assert run.metrics["latency/tpot_p50_ms"] == pytest.approx(3.42, abs=0.005)
    assert run.metrics["user/speed_tok_s"] == pytest.approx(292.4, abs=0.2)


def test_a_failed_request_leaves_zeros_that_count_nowhere(make_vllm: Make) -> None:
    detailed = make_vllm(
        num_prompts=3, completed=2, failed=1, start_times=[0.0] * 3, input_lens=[100] * 3,
        output_lens=[51, 0, 51], ttfts=[0.1, 0.0, 0.1], itls=[[0.05] * 20, [], [0.05] * 20],
    )  # fmt: skip
    (run,) = read(detailed, "a").runs
    assert (run.requests, run.failed) == (3, 1)
    assert run.metrics["latency/ttft_p50_ms"] == pytest.approx(100.0)
    assert run.metrics["user/speed_tok_s"] == pytest.approx(50.0)
    (silent,) = read(make_vllm(completed=15, failed=1, latencies=[1.1] * 15 + [0.0]), "a").runs
    assert silent.definitions["user/speed_tok_s"] == OF_MEANS, "the sums hold a failed one"


def test_failures_are_told_by_what_is_missing_in_older_files(make_vllm: Make) -> None:
    older = {key: value for key, value in make_vllm(completed=12).items() if key != "failed"}
    (run,) = read(older, "a").runs
    assert (run.requests, run.failed) == (16, 4)


def test_where_everything_failed_there_is_no_measurement(make_vllm: Make) -> None:
    (run,) = read(make_vllm(completed=0, failed=16, latencies=[0.0] * 16), "a").runs
    assert run.failure == "every request failed"


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, ("concurrency", 4.0)),
        ({"request_rate": 2.5}, ("rate", 2.5)),
        ({"request_rate": 2.5, "max_concurrency": None}, ("rate", 2.5)),
        ({"request_rate": "inf", "max_concurrency": 16}, ("concurrency", 16.0)),
    ],
)
def test_levels(make_vllm: Make, changes: dict[str, Any], level: tuple[str, float]) -> None:
    (run,) = read(make_vllm(**changes), "a").runs
    assert (run.axis, run.level) == level


def test_what_is_no_level(make_vllm: Make) -> None:
    reading = read(make_vllm(max_concurrency=None), "a.json")
    assert not reading.runs
    assert reading.notes[0].startswith("a.json left out: all 16 prompts were sent at once")
    with pytest.raises(OtherResultsError, match="ramped its request rate"):
        read(make_vllm(ramp_up_strategy="linear", ramp_up_start_rps=1, ramp_up_end_rps=9), "a.json")


def test_a_pooling_benchmark_is_refused(make_vllm: Make) -> None:
    pooling = {key: value for key, value in make_vllm().items() if key != "total_output_tokens"}
    with pytest.raises(OtherResultsError, match="pooling benchmark"):
        read(pooling, "a.json")


def test_caveats(make_vllm: Make) -> None:
    (few,) = read(make_vllm(max_concurrency=8), "a").runs
    assert few.caveats == ("16 answered requests at C=8, fewer than four a slot: ramp and drain weigh in it",)
    (held,) = read(make_vllm(request_rate=3.0), "a").runs
    assert "held at 4 in flight" in held.caveats[0]
    (whole,) = read(make_vllm(mean_ttft_ms=0, mean_tpot_ms=0), "a").runs
    assert "did not stream" in whole.caveats[0]
    assert "user/speed_tok_s" not in whole.metrics


def test_the_steady_window_leaves_ramp_and_drain_out(make_vllm: Make) -> None:
    """Two slots, requests of 1 s (TTFT .5 s) one after another; a long last one of 4 s drains.

    Slots end their first requests at 1 s; the last is sent at 3 s, when the other slot's last ends at 3 s:
    between 1 s and 3 s four prompts of 10 tokens are answered with 9 each, and chunks before 3 s count.
    """
    short = {"ttft_s": 0.5, "gaps_s": [0.25, 0.25], "prompt_tokens": 10.0, "tokens": 9.0}
    starts = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    streams = [Stream(start_s=start, **short) for start in starts]  # type: ignore[arg-type]  # as named
    streams.append(Stream(start_s=3.0, ttft_s=2.0, gaps_s=[2.0], prompt_tokens=10.0, tokens=9.0))
    found = steady(streams, 2)
    assert found["window/seconds"] == 2.0
    # chunks at .5, .75 and 1.0 s of each: those at the end of the ramp (1 s) count, those at 3 s do not
    output = 2 * 4.0 + 2 * (1.0 + 4.0 + 4.0) + 2 * (1.0 + 4.0)
    assert found["throughput/output_tok_s"] == pytest.approx(output / 2.0)
    assert found["throughput/total_tok_s"] == pytest.approx((output + 40.0) / 2.0)
    assert found["window/drain_share"] == pytest.approx(4.0 / 7.0)
    assert steady(streams[:2], 2) == {}
    detailed = make_vllm(
        max_concurrency=2, completed=7, start_times=[stream.start_s for stream in streams],
        ttfts=[stream.ttft_s for stream in streams], itls=[list(stream.gaps_s) for stream in streams],
        input_lens=[10] * 7, output_lens=[9] * 7,
    )  # fmt: skip
    (run,) = read(detailed, "a").runs
    assert run.metrics["throughput/output_tok_s"] == found["throughput/output_tok_s"]
    assert run.metrics["fixed_work/output_tok_s"] == pytest.approx(816 / 4.4)
    assert run.definitions["throughput/output_tok_s"] == WINDOW
    (plain,) = read(make_vllm(), "b").runs
    none = OtherArm(drafter="none")
    frame, _ = others_frame([(run, none), (plain, none)])
    assert list(frame["throughput/output_tok_s"]) == pytest.approx([816 / 4.4] * 2), (
        "one of them has no window"
    )
    assert plain.definitions["throughput/output_tok_s"] == WHOLE_RUN
