"""What is a token, and what is a failure: the stream corpus."""

import json
from itertools import pairwise
from typing import Any

import pytest

from jobs.replay.stream import StreamReader

ROLE = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
DONE = b"[DONE]"


def usage(completion: int, prompt: int = 7, cached: int | None = 0) -> dict[str, Any]:
    details = None if cached is None else {"cached_tokens": cached}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}


def final(completion: int) -> dict[str, Any]:
    return {
        "choices": [],
        "usage": usage(completion),
        "metrics": {"speculative_decoding": {"mean_acceptance_length": 1.23}},
    }


def play(*events: dict[str, Any] | bytes, expected: int = 40) -> StreamReader:
    """Feed events 10 ns apart, from time 10."""
    reader = StreamReader()
    for index, event in enumerate(events, start=1):
        reader.feed(event if isinstance(event, bytes) else json.dumps(event).encode(), index * 10)
    reader.settle(expected)
    return reader


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "Okay"},
        {"reasoning": "Okay"},
        {"reasoning_content": "Okay"},
        {"content": ""},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"q"'}}]},
        {"role": "assistant", "content": "Okay"},
    ],
)
def test_chat_deltas_that_carry_a_token(delta: dict[str, Any]) -> None:
    reader = play(ROLE, {"choices": [{"index": 0, "delta": delta}]}, FINISH, final(40), DONE)
    assert reader.error is None
    assert list(reader.times) == [20]
    assert list(reader.counts) == [40]


@pytest.mark.parametrize(
    "event",
    [
        ROLE,
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"index": 0, "delta": {}}]},
        {"choices": [{"index": 0, "delta": {"content": None}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": []}}]},
        {"choices": []},
        {"choices": [], "usage": None},
        {"choices": [{"index": 0, "text": "", "finish_reason": "length"}]},
        FINISH,
    ],
)
def test_events_that_are_no_token(event: dict[str, Any]) -> None:
    reader = StreamReader()
    reader.feed(json.dumps(event).encode(), 10)
    assert not reader.times


@pytest.mark.parametrize("k", [1, 2, 4, 8, 16])
def test_k_tokens_a_chunk_are_counted_by_continuous_usage(k: int) -> None:
    chunks = [
        {"choices": [{"text": "x", "finish_reason": None}], "usage": usage(k * (i + 1), cached=None)}
        for i in range(5)
    ]
    chunks[-1]["choices"][0]["finish_reason"] = "length"
    reader = play(*chunks, final(5 * k), DONE, expected=5 * k)
    assert reader.error is None
    assert list(reader.counts) == [k * (i + 1) for i in range(5)]
    assert reader.cached_tokens == 0
    assert reader.prompt_tokens == 7


def test_continuous_usage_decides_whatever_the_text_says() -> None:
    reader = play(
        {"choices": [{"text": "", "finish_reason": None}], "usage": usage(0)},
        {"choices": [{"text": "", "finish_reason": None}], "usage": usage(2)},  # text held back
        {"choices": [{"text": "ab", "finish_reason": None}], "usage": usage(2)},  # and handed over later
        {"choices": [{"text": "c", "finish_reason": "length"}], "usage": usage(3)},
        final(3),
        DONE,
        expected=3,
    )
    assert reader.error is None
    assert list(reader.times) == [20, 40]
    assert list(reader.counts) == [2, 3]


def test_final_usage_alone_is_spread_over_the_chunks() -> None:
    texts = [{"choices": [{"text": "x", "finish_reason": "length" if i == 3 else None}]} for i in range(4)]
    reader = play(*texts, final(10), DONE, expected=10)
    assert reader.error is None
    assert list(reader.counts) == [2, 5, 7, 10]


def test_usage_on_the_finishing_chunk_is_a_total_and_no_token() -> None:
    texts = [{"choices": [{"text": "x", "finish_reason": None}]} for _ in range(2)]
    last = {"choices": [{"text": "", "finish_reason": "length"}], "usage": usage(6)}
    reader = play(*texts, last, DONE, expected=6)
    assert reader.error is None
    assert list(reader.times) == [10, 20]
    assert list(reader.counts) == [3, 6]


def test_tokens_that_only_the_final_usage_knows_belong_to_the_last_chunk() -> None:
    chunk = {"choices": [{"text": "x", "finish_reason": "length"}], "usage": usage(3)}
    reader = play(chunk, final(4), DONE, expected=4)
    assert reader.error is None
    assert list(reader.counts) == [4]


GOOD = {"choices": [{"text": "x", "finish_reason": "length"}], "usage": usage(4)}


@pytest.mark.parametrize(
    ("events", "error", "detail"),
    [
        ((GOOD, final(4)), "cut", "[DONE]"),
        (({"choices": [{"text": "x", "finish_reason": "length"}]}, DONE), "cut", "usage"),
        (({"choices": [{"text": "x"}], "usage": usage(4)}, DONE), "cut", "finish_reason"),
        ((), "cut", "finish_reason and usage and [DONE]"),
        (({**GOOD, "usage": usage(3)}, final(3), DONE), "short", "3 tokens instead of the pinned 4"),
        (({**GOOD, "usage": usage(5)}, final(5), DONE), "long", "5 tokens instead of the pinned 4"),
        ((FINISH, final(4), DONE), "no_tokens", "usage says 4"),
        ((b'{"choices": [{"text": NaN}]}', GOOD, final(4), DONE), "bad_json", "NaN"),
        ((b'{"choices": [{"te', GOOD), "bad_json", '{"te'),
        (({"error": {"message": "boom"}}, DONE), "error_body", "boom"),
        (({"object": "error", "message": "old style"}, DONE), "error_body", "old style"),
        (({"choices": [{"text": "x", "finish_reason": "abort"}]}, DONE), "aborted", "abort"),
        (({"choices": [{"text": "x", "finish_reason": "error"}]}, DONE), "aborted", "error"),
    ],
)
def test_failures(events: tuple[Any, ...], error: str, detail: str) -> None:
    reader = play(*events, expected=4)
    assert reader.error == error
    assert detail in reader.error_detail


def test_the_first_failure_stays() -> None:
    reader = play({"error": {"message": "first"}}, b"junk", expected=4)
    assert reader.error == "error_body"


def test_a_null_error_is_none() -> None:
    assert play({**GOOD, "error": None}, final(4), DONE, expected=4).error is None


ACCEPTANCE = {
    "mean_acceptance_length": 1.2325581395348837,
    "draft_acceptance_rate": 0.07751937984496124,
    "acceptance_histogram": [39, 1, 0, 3],
    "num_spec_steps": 43,
    "num_accepted_draft_tokens": 10,
    "num_draft_tokens": 129,
    "num_spec_tokens": 3,
}


def test_the_engines_account_of_a_requests_drafts_is_kept() -> None:
    last = {"choices": [], "usage": usage(4), "metrics": {"speculative_decoding": ACCEPTANCE}}
    found = play(GOOD, last, DONE, expected=4).speculation
    assert found is not None
    assert (found.steps, found.accepted, found.drafted) == (43, 10, 129)
    assert sum(found.histogram) == found.steps
    assert sum(accepted * steps for accepted, steps in enumerate(found.histogram)) == found.accepted
    assert found.mean_length == pytest.approx(ACCEPTANCE["mean_acceptance_length"])
    assert found.accepted / found.drafted == pytest.approx(ACCEPTANCE["draft_acceptance_rate"])
    assert found.per_position == pytest.approx([4 / 43, 3 / 43, 3 / 43])


@pytest.mark.parametrize("metrics", [None, [], "fast", {}, {"speculative_decoding": {"steps": 1}}])
def test_metrics_of_another_form_are_no_failure(metrics: Any) -> None:
    reader = play(GOOD, {"choices": [], "usage": usage(4), "metrics": metrics}, DONE, expected=4)
    assert reader.error is None
    assert reader.speculation is None


def test_chunks_of_several_tokens_are_spread_over_their_gap() -> None:
    """A server at 292.29 tokens/s in chunks 8.72 ms apart has 3.4 ms a token, whatever its chunks hold."""
    gap, per_second, chunks = 8.72e-3, 292.29, 1000
    total = [round(gap * per_second * (index + 1)) for index in range(chunks)]
    reader = StreamReader()
    for index, tokens in enumerate(total):
        choice = {"text": "x", "finish_reason": "length" if index == chunks - 1 else None}
        chunk = {"choices": [choice], "usage": usage(tokens)}
        reader.feed(json.dumps(chunk).encode(), round(index * gap * 1e9))
    reader.feed(json.dumps(final(total[-1])).encode(), round(chunks * gap * 1e9))
    reader.feed(DONE, round(chunks * gap * 1e9))
    reader.settle(total[-1])
    assert reader.error is None
    per_chunk = [after - before for before, after in pairwise(reader.counts)]
    assert set(per_chunk) == {2, 3}
    assert 2.5 <= sum(per_chunk) / len(per_chunk) <= 2.7
    tpot_ms = (reader.times[-1] - reader.times[0]) / (reader.counts[-1] - reader.counts[0]) / 1e6
    assert tpot_ms == pytest.approx(3.42, abs=0.02)
