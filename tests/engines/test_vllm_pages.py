"""The parsers on pages that a real vLLM wrote: two ranks, a draft model of K=3, around eight requests.

`tests/real_engine/record_pages.py` records them anew; then the figures here are those of the new pages.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from engines.base import KVCapacity
from engines.errors import EngineError
from engines.metrics_page import Page
from engines.vllm_http import parse_capacity, parse_counters
from engines.vllm_series import VLLM_SERIES

PAGES = Path(__file__).parent / "pages"
BEFORE = (PAGES / "vllm-0.32.0-dp2-draft-model-before.txt").read_text()
AFTER = (PAGES / "vllm-0.32.0-dp2-draft-model-after.txt").read_text()
REQUESTS, PROMPT, TOKENS = 8, 90, 48


def test_every_series_that_is_read_is_on_a_real_page_under_each_rank() -> None:
    page = Page(AFTER)
    for series in VLLM_SERIES:
        ranks = [labels["engine"] for labels, _ in page.values(series)]
        assert set(ranks) == {"0", "1"}, series.name


def test_a_drafters_series_are_there_before_the_first_draft() -> None:
    first = parse_counters(BEFORE, time=0.0)
    assert len(first.accepted_per_position) == 3
    assert first.draft_tokens == 3 * first.drafts


def test_the_delta_is_what_the_client_sent_and_got() -> None:
    delta = parse_counters(AFTER, time=9.0).since(parse_counters(BEFORE, time=4.0))
    assert delta.time == 5.0
    assert delta.prompt_tokens == REQUESTS * PROMPT
    assert delta.generation_tokens == REQUESTS * TOKENS
    assert delta.first_tokens == REQUESTS
    # four prompts came twice; two of them met the rank that had kept their two whole blocks of 32 tokens
    assert delta.cached_prompt_tokens == delta.prefix_hits == 2 * 64
    assert delta.computed_prompt_tokens == delta.prompt_tokens - delta.cached_prompt_tokens
    assert (delta.running, delta.waiting, delta.preemptions, delta.kv_usage) == (0, 0, 0, 0.0)


def test_drafts_are_those_of_both_ranks() -> None:
    delta = parse_counters(AFTER, time=1.0).since(parse_counters(BEFORE, time=0.0))
    assert delta.drafts == delta.step_intervals
    assert delta.draft_tokens == 3 * delta.drafts
    assert delta.accepted_tokens == sum(delta.accepted_per_position)
    assert 1.0 + delta.accepted_tokens / delta.drafts == pytest.approx(
        2.25, abs=0.15
    )  # built to agree to 60 %
    only = parse_counters(_without_rank("1"), time=1.0)
    assert 0 < only.drafts < delta.drafts


def test_capacity_is_two_pools_and_blocks_are_not_doubled() -> None:
    """268,435,456 bytes a rank, 5,120 bytes a token in blocks of 32: 1,638 blocks; vLLM shows 3,276 twice."""
    capacity = parse_capacity(AFTER)
    assert capacity == KVCapacity(tokens=2 * 1638 * 32, block_size=32, blocks=2 * 1638, ranks=2)
    assert (capacity.rank_tokens, capacity.rank_blocks, capacity.uniform) == (1638 * 32, 1638, True)


def test_capacity_without_vllms_own_tokens_comes_from_blocks_once() -> None:
    capacity = parse_capacity(re.sub(r'kv_cache_size_tokens="\d+"', 'kv_cache_size_tokens="None"', AFTER))
    assert (capacity.tokens, capacity.ranks) == (2 * 1638 * 32, 2)


def test_a_hybrid_models_tokens_are_not_its_blocks() -> None:
    """What vLLM states goes over all kinds of KV; blocks times block size would be too few here."""
    capacity = parse_capacity(AFTER.replace('kv_cache_size_tokens="52416"', 'kv_cache_size_tokens="90000"'))
    assert (capacity.tokens, capacity.uniform) == (180_000, False)


def test_created_series_are_times_and_count_nothing() -> None:
    times = [line for line in AFTER.splitlines() if "_created{" in line]
    assert len(times) > 50
    assert all(float(line.rpartition(" ")[2]) > 1e9 for line in times)
    bare = "\n".join(line for line in AFTER.splitlines() if "_created" not in line) + "\n"
    assert parse_counters(bare, time=0.0) == parse_counters(AFTER, time=0.0)


def test_labels_that_hold_names_of_metrics_count_nothing() -> None:
    name = 'model_name="vllm:generation_tokens_total{engine=\\"7\\"} 999\\n vllm:num_preemptions_total 5"'
    odd = AFTER.replace('model_name="tiny"', name)
    assert parse_counters(odd, time=0.0) == parse_counters(AFTER, time=0.0)


def test_buckets_are_dropped_whatever_else_a_page_has() -> None:
    bare = "\n".join(line for line in AFTER.splitlines() if "_bucket{" not in line) + "\n"
    assert parse_counters(bare, time=0.0) == parse_counters(AFTER, time=0.0)


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_restart_between_two_pages_is_no_negative_number(rank: str) -> None:
    """The whole engine, or one rank of it, begins anew: some counter is below what it was."""
    with pytest.raises(EngineError, match="fell from"):
        parse_counters(BEFORE, time=1.0).since(parse_counters(AFTER, time=0.0))
    gone = replace(parse_counters(_without_rank(rank), time=1.0))
    with pytest.raises(EngineError, match="fell from"):
        gone.since(parse_counters(AFTER, time=0.0))


def _without_rank(rank: str) -> str:
    return "\n".join(line for line in AFTER.splitlines() if f'engine="{rank}"' not in line) + "\n"
