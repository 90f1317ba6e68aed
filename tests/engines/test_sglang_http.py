"""SGLang's metrics page: two data-parallel ranks on two pipeline stages each, written after its source."""

from pathlib import Path

import pytest

from engines.errors import EngineError
from engines.sglang_http import parse_capacity, parse_counters

PAGE = (Path(__file__).parent / "pages" / "sglang_dp2_pp2.txt").read_text()


def without(name: str) -> str:
    return "\n".join(line for line in PAGE.split("\n") if not line.startswith((name + "{", name + " ")))


def test_tokens_are_counted_over_all_streams_and_sources() -> None:
    counters = parse_counters(PAGE, time=1.0, k=3)
    assert (counters.prompt_tokens, counters.cached_prompt_tokens) == (10_000, 3_200)
    assert counters.computed_prompt_tokens == 6_800
    assert counters.generation_tokens == 2_100
    assert counters.first_tokens == 105


def test_acceptance_is_of_all_ranks_and_never_a_rank_s_own_figure() -> None:
    counters = parse_counters(PAGE, time=1.0, k=3)
    # 2100 tokens of 100 requests: 2000 by 800 verifications, of which each yields one by itself.
    assert (counters.drafts, counters.draft_tokens, counters.accepted_tokens) == (800, 2_400, 1_200)
    assert (counters.step_intervals, counters.step_seconds) == (800, 24.0)
    assert not counters.knows("accepted_per_position")
    assert counters.knows("drafts", "accepted_tokens")


def test_a_baseline_has_a_step_a_token() -> None:
    counters = parse_counters(without("sglang:spec_verify_calls_total"), time=1.0, k=0)
    assert (counters.drafts, counters.draft_tokens, counters.accepted_tokens) == (0, 0, 0)
    assert (counters.step_intervals, counters.absent) == (2_000, frozenset())


def test_gauges_are_read_once_a_data_parallel_rank() -> None:
    counters = parse_counters(PAGE, time=1.0, k=3)
    assert (counters.running, counters.waiting, counters.preemptions) == (5, 1, 7)
    assert counters.kv_usage == pytest.approx(0.4)
    capacity = parse_capacity(PAGE)
    assert (capacity.tokens, capacity.block_size, capacity.blocks, capacity.ranks) == (131_056, 16, 8_191, 2)


def test_the_part_of_one_priority_is_in_the_whole() -> None:
    line = next(line for line in PAGE.split("\n") if line.startswith('sglang:num_running_reqs{dp_rank="1"'))
    parts = (line.replace('pp_rank="0"', f'pp_rank="0",priority="{value}"') for value in ("", "7"))
    page = PAGE.replace(line, "\n".join(parts))
    assert parse_counters(page, time=1.0, k=3).running == 5


def test_series_that_come_with_their_first_event_may_be_missing() -> None:
    page = without("sglang:cached_tokens_total")
    assert parse_counters(page, time=1.0, k=3).computed_prompt_tokens == 10_000
    assert parse_capacity(without("sglang:max_total_num_tokens")).tokens is None


@pytest.mark.parametrize("name", ["sglang:generation_tokens_total", "sglang:num_requests_total"])
def test_a_page_without_what_is_needed_names_it(name: str) -> None:
    with pytest.raises(EngineError, match=f"no {name}"):
        parse_counters(without(name), time=1.0, k=3)


def test_a_counter_that_was_reset_is_an_error_and_no_number() -> None:
    before = parse_counters(PAGE, time=1.0, k=3)
    fresh = PAGE.replace(
        'sglang:generation_tokens_total{engine_type="unified",is_streaming="true",model_name="m"} 2000.0',
        'sglang:generation_tokens_total{engine_type="unified",is_streaming="true",model_name="m"} 20.0',
    )
    with pytest.raises(EngineError, match="generation_tokens fell from 2100 to 120"):
        parse_counters(fresh, time=2.0, k=3).since(before)
