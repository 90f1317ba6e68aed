import json
from typing import Any

import pytest

from engines.emulator.dialect import Answer, Ask, BadRequestError, parse, speculation, usage
from engines.emulator.tokenizer import EmulatedTokenizer

TOKENIZER = EmulatedTokenizer()


def ask(chat: bool = False, **body: Any) -> Ask:
    body = {"prompt": [1, 2, 3], **body} if not chat else body
    return parse(json.dumps(body).encode(), chat=chat, model="m", max_context=100, tokenizer=TOKENIZER)


def answer(one: Ask) -> Answer:
    return Answer(one, request_id="r", model="m", created=5, tokenizer=TOKENIZER)


def events(data: bytes) -> list[Any]:
    lines = [part.removeprefix("data: ") for part in data.decode().split("\n\n") if part]
    return [json.loads(line) for line in lines if line != "[DONE]"] + (
        ["[DONE]"] if "[DONE]" in lines else []
    )


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize("chat", [True, False])
def test_hand_written_chunks_are_the_json_they_stand_for(chat: bool, continuous: bool):
    options = {"include_usage": True, "continuous_usage_stats": continuous}
    body = {"messages": [{"role": "user", "content": "hi"}]} if chat else {}
    one = ask(chat, stream=True, stream_options=options, max_tokens=9, return_token_ids=True, **body)
    whole = answer(one)
    [chunk] = events(whole.chunk([7, 8], 4, finished=False))
    choice = chunk["choices"][0]
    text = TOKENIZER.text(7) + TOKENIZER.text(8)
    assert (choice["delta"]["content"] if chat else choice["text"]) == text
    assert choice["token_ids"] == [7, 8]
    assert choice["finish_reason"] is None
    assert chunk["system_fingerprint"].startswith("emulated")
    assert chunk.get("usage") == (usage(len(one.prompt), 4) if continuous else None)
    [end] = events(whole.chunk([7], 5, finished=True))
    assert end["choices"][0]["finish_reason"] == "length"


def test_a_chat_opens_with_a_role_and_a_completion_with_nothing():
    opening = answer(ask(chat=True, messages=[{"role": "user", "content": "hi"}], stream=True)).first()
    [role] = events(opening)
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert answer(ask(stream=True)).first() == b""


def test_the_trailing_usage_chunk_has_the_cached_tokens_even_when_zero():
    one = ask(stream=True, stream_options={"include_usage": True})
    trailing, done = events(answer(one).last(6, cached=0))
    assert trailing["choices"] == []
    assert trailing["usage"] == {
        "prompt_tokens": 3, "total_tokens": 9, "completion_tokens": 6,
        "prompt_tokens_details": {"cached_tokens": 0},
    }  # fmt: skip
    assert done == "[DONE]"
    assert events(answer(ask(stream=True)).last(6, cached=0)) == ["[DONE]"]


def test_a_drafters_account_of_a_request_is_vllms():
    account = speculation([0] * 39 + [1] + [3] * 3, 129, 3)["speculative_decoding"]
    assert account == {
        "mean_acceptance_length": 1 + 10 / 43, "draft_acceptance_rate": 10 / 129,
        "acceptance_histogram": [39, 1, 0, 3], "num_spec_steps": 43, "num_accepted_draft_tokens": 10,
        "num_draft_tokens": 129, "num_spec_tokens": 3,
    }  # fmt: skip
    empty = speculation([], 0, 3)["speculative_decoding"]
    assert (empty["num_spec_steps"], empty["mean_acceptance_length"]) == (0, None)
    one = ask(stream=True, stream_options={"include_usage": True})
    trailing, _ = events(answer(one).last(6, cached=0, drafts={"speculative_decoding": account}))
    assert trailing["metrics"]["speculative_decoding"] == account


def test_defaults_of_length():
    assert ask().max_tokens == 16
    assert ask(prompt=[1] * 95).max_tokens == 5
    assert ask(chat=True, messages=[{"role": "user", "content": "hi"}]).max_tokens == 100 - 5
    assert ask(max_completion_tokens=7).max_tokens == 7


def test_message_parts_are_joined():
    parts = [{"type": "text", "text": "good "}, {"type": "text", "text": "day"}]
    assert (
        ask(chat=True, messages=[{"role": "user", "content": parts}]).prompt
        == ask(chat=True, messages=[{"role": "user", "content": "good day"}]).prompt
    )


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"prompt": [1] * 100}, 400, "maximum context length is 100"),
        ({"prompt": [1] * 90, "max_tokens": 11}, 400, "maximum context length is 100"),
        ({"prompt": []}, 400, "prompt"),
        ({"prompt": [[1, 2]]}, 400, "one prompt a request"),
        ({"prompt": [1.5]}, 400, "prompt"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": "9"}, 400, "max_tokens"),
        ({"model": "other"}, 404, "`other` does not exist"),
        ({"n": 2}, 400, "n has to be 1"),
        ({"seed": "x"}, 400, "seed"),
        ({"cache_salt": ""}, 400, "cache_salt"),
        ({"stream_options": [1]}, 400, "stream_options"),
    ],
)
def test_bad_requests_are_answered_with_their_reason(body: dict[str, Any], status: int, words: str):
    with pytest.raises(BadRequestError, match=words) as caught:
        ask(**body)
    assert caught.value.status == status


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff"])
def test_bodies_that_are_no_json_object(body: bytes):
    with pytest.raises(BadRequestError):
        parse(body, chat=False, model="m", max_context=100, tokenizer=TOKENIZER)


@pytest.mark.parametrize("messages", [None, [], [{"content": "x"}], [{"role": "user", "content": 5}], ["x"]])
def test_bad_messages(messages: Any):
    with pytest.raises(BadRequestError):
        ask(chat=True, messages=messages)
