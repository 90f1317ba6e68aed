import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.errors import ChatRefusedError, WorkloadError
from jobs.workload.bind import bind, digest_of, read, write
from jobs.workload.conversation import RECORDED, Conversation, Message, Turn, Workload
from jobs.workload.policies import Policies
from jobs.workload.tokenizer import FolderTokenizer
from jobs.workload.tokens import TokenWorkload


def conversation(name: str, *turns: tuple[str, str]) -> Conversation:
    return Conversation(
        id=name,
        turns=tuple(Turn(messages=(Message(role="user", content=ask),), reply=reply) for ask, reply in turns),
    )


WORKLOAD = Workload(
    name="w",
    conversations=(
        conversation("short", ("Hi", "Yes."), ("And?", "No."), ("Ok", "")),
        conversation("long", ("x" * 300, "y" * 50)),
        conversation("middle", ("m" * 60, "n" * 20)),
    ),
    validity=RECORDED,
)


@pytest.fixture(scope="module")
def tokenizer(model_folder: Path) -> FolderTokenizer:
    return FolderTokenizer(model_folder)


def test_prompts_are_the_rendered_recorded_history(tokenizer: FolderTokenizer) -> None:
    bound = bind(WORKLOAD, tokenizer, max_context=1000)
    first = bound.conversations[0]
    prompts = list(bound.prompts(first))
    chat = [("user", "Hi"), ("assistant", "Yes."), ("user", "And?"), ("assistant", "No."), ("user", "Ok")]
    assert prompts == [tokenizer.render(chat[:n]) for n in (1, 3, 5)]
    assert [turn.output_tokens for turn in first.turns] == [4, 3, 1]  # at least one
    assert first.turns[0].keep == 0
    # The next prompt goes on after the marker of the assistant, where the reply begins.
    assert [turn.keep for turn in first.turns[1:]] == [len(prompt) for prompt in prompts[:2]]
    assert [turn.prompt_tokens for turn in first.turns] == [len(prompt) for prompt in prompts]


def test_what_does_not_fit_is_dropped_with_the_reason(tokenizer: FolderTokenizer) -> None:
    bound = bind(WORKLOAD, tokenizer, max_context=200)
    assert [c.id for c in bound.conversations] == ["short", "middle"]
    [(name, reason)] = bound.dropped
    assert name == "long"
    longest = len(tokenizer.render([("user", "x" * 300)])) + 50
    assert reason == f"needs {longest} tokens; the model's context holds 200"
    fitting = bind(WORKLOAD, tokenizer, max_context=longest)
    assert not fitting.dropped
    assert bind(WORKLOAD, tokenizer, max_context=longest - 1).dropped


def test_what_the_template_refuses_is_dropped_with_the_reason(model_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(model_folder, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    strict = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    config["chat_template"] = strict + config["chat_template"]
    (tmp_path / "model" / "tokenizer_config.json").write_text(json.dumps(config))
    picky = FolderTokenizer(tmp_path / "model")
    messages = (Message(role="system", content="s"), Message(role="user", content="u"))
    refused = Conversation(id="refused", turns=(Turn(messages=messages, reply="r"),))
    mixed = replace(WORKLOAD, conversations=(refused, *WORKLOAD.conversations))
    bound = bind(mixed, picky, max_context=1000)
    assert [c.id for c in bound.conversations] == ["short", "long", "middle"]
    [(name, reason)] = bound.dropped
    assert name == "refused"
    assert "refuses a conversation with the roles system user (no system role)" in reason
    with pytest.raises(ChatRefusedError, match="no system role"):
        bind(replace(WORKLOAD, conversations=(refused,)), picky, max_context=1000)


def test_nothing_fits(tokenizer: FolderTokenizer) -> None:
    with pytest.raises(
        WorkloadError, match=r"none of its 3 conversations fits the model's context of 10 tokens"
    ):
        bind(WORKLOAD, tokenizer, max_context=10)


def test_capped_output(tokenizer: FolderTokenizer) -> None:
    bound = bind(WORKLOAD, tokenizer, max_context=1000, policies=Policies(max_output_tokens=3))
    assert {turn.output_tokens for c in bound.conversations for turn in c.turns} == {1, 3}


def test_a_limit_keeps_that_many_that_fit_in_their_order(tokenizer: FolderTokenizer) -> None:
    for seed in range(8):
        bound = bind(WORKLOAD, tokenizer, max_context=200, policies=Policies(limit=2), seed=seed)
        assert [c.id for c in bound.conversations] == ["short", "middle"]
    picks = {
        bind(WORKLOAD, tokenizer, max_context=1000, policies=Policies(limit=1), seed=seed).conversations[0].id
        for seed in range(20)
    }
    assert picks == {"short", "long", "middle"}
    for name in ("limit", "max_output_tokens"):
        with pytest.raises(WorkloadError, match=rf"workload\.{name} is 0"):
            Policies.of({name: 0})


def test_the_file_gives_back_the_workload(tokenizer: FolderTokenizer, tmp_path: Path) -> None:
    bound = bind(WORKLOAD, tokenizer, max_context=200)
    write(bound, tmp_path / "w.json")
    again = read(tmp_path / "w.json")
    assert replace(again, conversations=tuple(again.conversations)) == bound
    with pytest.raises(WorkloadError, match="does not exist"):
        read(tmp_path / "none.json")
    (tmp_path / "w.json").write_bytes((tmp_path / "w.json").read_bytes()[:-5])
    with pytest.raises(WorkloadError, match="is damaged"):
        read(tmp_path / "w.json")


def test_the_digest_is_of_what_is_sent(make_workload: Callable[..., TokenWorkload]) -> None:
    made = make_workload()
    assert digest_of(made) == digest_of(replace(made, name="other", dropped=(("x", "y"),)))
    assert digest_of(make_workload(turns=1)) != digest_of(made)
    assert digest_of(replace(made, tokenizer="other")) != digest_of(made)
    assert digest_of(replace(made, conversations=made.conversations[::-1])) != digest_of(made)
    # Pinned: the digest names workloads in plans that are kept.
    assert digest_of(made).startswith("3dcce4d36eb9b06f")
