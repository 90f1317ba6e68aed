"""What policies do to conversations: choice, fit to the context, lengths, gaps, and what is said about it."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.emulator.tokenizer import EmulatedTokenizer
from jobs.errors import MissingRepliesError, WorkloadError
from jobs.workload.bind import bind, digest_of
from jobs.workload.conversation import HASHED, RECORDED, Conversation, Message, Turn, Workload
from jobs.workload.policies import Policies
from jobs.workload.tokenizer import FolderTokenizer
from jobs.workload.tokens import TokenWorkload
from jobs.workload.trace import TraceConversation, TraceTurn

BLOCK = 10


def trace(*lengths: tuple[int, int], head: int = 0, name: str = "t", first: int = 0) -> TraceConversation:
    """A conversation whose prompts grow: (prompt tokens, output tokens) a turn."""
    turns = tuple(
        TraceTurn(
            blocks=range(first, first - (-tokens // BLOCK)),
            block_size=BLOCK,
            input_tokens=tokens,
            output_tokens=output,
            gap=None if index == 0 else 2.0,
        )
        for index, (tokens, output) in enumerate(lengths)
    )
    return TraceConversation(id=name, turns=turns, start=0.0, head_tokens=head)


def bound(*conversations: TraceConversation, context: int = 1000, **settings: object) -> TokenWorkload:
    workload = Workload(name="w", conversations=conversations, validity=HASHED, notes=("imported",))
    return bind(workload, EmulatedTokenizer(), max_context=context, policies=Policies.of(settings))


def lengths(workload: TokenWorkload) -> list[list[tuple[int, int]]]:
    return [[(turn.prompt_tokens, turn.output_tokens) for turn in c.turns] for c in workload.conversations]


def prompts(workload: TokenWorkload, index: int = 0) -> list[list[int]]:
    return list(workload.prompts(workload.conversations[index]))


def test_drop_names_what_does_not_fit() -> None:
    made = bound(trace((90, 5), (95, 6)), trace((20, 5), name="u"), context=100)
    assert made.dropped == (("t", "needs 101 tokens; the model's context holds 100"),)
    assert [c.id for c in made.conversations] == ["u"]
    assert len(bound(trace((90, 5), (95, 6)), context=101).conversations) == 1


def test_the_oldest_blocks_after_the_head_are_cut() -> None:
    whole = bound(trace((35, 5), (75, 6), (95, 5)), context=1000)
    cut = bound(trace((35, 5), (75, 6), (95, 5), head=19), context=60, fit="truncate_oldest")
    assert lengths(cut) == [[(35, 5), (45, 6), (55, 5)]]
    before, after = prompts(whole), prompts(cut)
    assert after[0] == before[0]
    assert after[1] == before[1][:10] + before[1][40:]  # a head of 19 tokens is one whole block
    assert after[2] == before[2][:10] + before[2][50:]
    assert (
        "cut to fit the model's context, the oldest blocks after the system prompt first: 2 turns of "
        "1 conversation, by 70 prompt tokens in all" in cut.notes
    )
    with pytest.raises(WorkloadError, match="none of its 1 conversation fits"):
        bound(trace((35, 60)), context=60, fit="truncate_oldest")
    with pytest.raises(WorkloadError, match="none of its 1 conversation fits"):
        bound(trace((95, 5), head=90), context=60, fit="truncate_oldest")


@given(
    st.lists(st.tuples(st.integers(1, 200), st.integers(1, 60)), min_size=1, max_size=5), st.integers(2, 150)
)
def test_truncated_prompts_fit_and_lose_as_little_as_they_can(
    shape: list[tuple[int, int]], context: int
) -> None:
    try:
        made = bound(trace(*shape), context=context, fit="truncate_oldest")
    except WorkloadError:
        assert any(
            output >= context or (tokens - 1) % BLOCK + 1 > context - output
            for tokens, output in shape
            if tokens + output > context
        )
        return
    [found] = lengths(made)
    for (tokens, output), (had, out) in zip(found, shape, strict=True):
        assert output == out
        assert tokens + output <= context
        assert tokens == had or tokens + BLOCK + output > context
    assert [len(prompt) for prompt in prompts(made)] == [tokens for tokens, _ in found]


def test_scale_makes_the_longest_fit_and_keeps_the_sharing() -> None:
    conversations = (trace((40, 10), (95, 5)), trace((25, 8), name="u"))
    full, half = bound(*conversations), bound(*conversations, context=51, fit="scale")
    assert half.conversations[0].block_size == 5
    assert lengths(half) == [[(20, 5), (48, 2)], [(13, 4)]]
    assert any("scaled by 0.5 (blocks of 10 tokens to 5)" in note for note in half.notes)
    for workload, size in ((full, 10), (half, 5)):
        one, other = prompts(workload), prompts(workload, 1)
        assert one[0][: 2 * size] == other[0][: 2 * size]
        assert one[1][: 4 * size] == one[0]
    assert digest_of(full) != digest_of(half)
    assert lengths(bound(*conversations, fit="scale")) == lengths(full)  # all fits: nothing shrinks
    with pytest.raises(WorkloadError, match="cannot shrink blocks of 10 tokens so far"):
        bound(*conversations, context=9, fit="scale")


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 90)), min_size=1, max_size=6), st.integers(20, 300)
)
def test_what_is_scaled_fits(shape: list[tuple[int, int]], context: int) -> None:
    conversations = [trace(pair, name=f"c{index}") for index, pair in enumerate(shape)]
    try:
        made = bound(*conversations, context=context, fit="scale")
    except WorkloadError:
        return
    found = [pair for turns in lengths(made) for pair in turns]
    assert all(tokens >= 1 and output >= 1 for tokens, output in found)
    assert all(tokens + output <= context for tokens, output in found)
    for index, (tokens, _) in enumerate(found):
        assert len(prompts(made, index)[0]) == tokens


def text(name: str, *turns: tuple[str, str | None], system: str = "") -> Conversation:
    made = []
    for index, (ask, reply) in enumerate(turns):
        messages = [Message(role="user", content=ask)]
        if system and index == 0:
            messages.insert(0, Message(role="system", content=system))
        made.append(Turn(messages=tuple(messages), reply=reply, gap=None if index == 0 else 4.0))
    return Conversation(id=name, turns=tuple(made))


def bind_texts(
    tokenizer: FolderTokenizer, *conversations: Conversation, context: int = 1000, **settings: object
) -> TokenWorkload:
    workload = Workload(name="w", conversations=conversations, validity=RECORDED)
    return bind(workload, tokenizer, max_context=context, policies=Policies.of(settings))


@pytest.fixture(scope="module")
def tokenizer(model_folder: Path) -> FolderTokenizer:
    return FolderTokenizer(model_folder)


def test_the_oldest_messages_after_the_system_prompt_are_cut(tokenizer: FolderTokenizer) -> None:
    talk = text("c", ("a" * 30, "b" * 30), ("c" * 30, "d" * 30), ("e" * 30, "f" * 20), system="S" * 10)
    chat = [
        ("system", "S" * 10),
        *[("user", "a" * 30), ("assistant", "b" * 30), ("user", "c" * 30), ("assistant", "d" * 30)],
        ("user", "e" * 30),
    ]
    rendered = [tokenizer.render(messages) for messages in (chat, [chat[0], *chat[3:]], [chat[0], chat[5]])]
    for context, expected in zip(
        (len(rendered[0]) + 20, len(rendered[1]) + 20, len(rendered[1]) + 19), rendered, strict=True
    ):
        made = bind_texts(tokenizer, talk, context=context, fit="truncate_oldest")
        assert prompts(made)[2] == expected
        assert prompts(made)[0] == tokenizer.render(chat[:2])
    assert any("the oldest messages after" in note for note in made.notes)
    with pytest.raises(WorkloadError, match="none of its 1 conversation fits"):
        bind_texts(tokenizer, talk, context=len(rendered[2]) + 19, fit="truncate_oldest")


def test_text_cannot_be_scaled(tokenizer: FolderTokenizer) -> None:
    with pytest.raises(WorkloadError, match=r"workload 'w' is text, and workload\.fit=scale shrinks lengths"):
        bind_texts(tokenizer, text("c", ("a", "b")), fit="scale")


def test_missing_replies_are_counted(tokenizer: FolderTokenizer) -> None:
    with pytest.raises(MissingRepliesError, match="no reply for 2 of its 4 turns"):
        bind_texts(tokenizer, text("c", ("a", "b"), ("c", None)), text("d", ("a", None), ("b", "c")))


def test_turns_output_and_gaps(tokenizer: FolderTokenizer) -> None:
    talk = text("c", ("a", "b" * 9), ("c", "d" * 5), ("e", "f"))
    made = bind_texts(tokenizer, talk, max_turns=2, max_output_tokens=6, gaps="scaled", gap_scale=0.25)
    [conversation] = made.conversations
    assert [turn.output_tokens for turn in conversation.turns] == [6, 5]
    assert [turn.gap for turn in conversation.turns] == [None, 1.0]
    assert made.notes == (
        "left out by workload.max_turns=2: 1 turn of 1 conversation",
        "capped at 6 output tokens: 1 turn whose reply was longer",
    )
    fixed = bind_texts(tokenizer, talk, output="fixed", output_tokens=3)
    assert [turn.output_tokens for turn in fixed.conversations[0].turns] == [3, 3, 3]
    assert [turn.gap for turn in fixed.conversations[0].turns] == [None, None, None]
    stated = Turn(messages=talk.turns[0].messages, reply="b" * 9, output_tokens=4)
    counted = bind_texts(tokenizer, Conversation(id="s", turns=(stated,)))
    assert counted.conversations[0].turns[0].output_tokens == 4


def test_turns_without_a_recorded_pause_are_counted() -> None:
    silent = TraceTurn(blocks=[1], block_size=BLOCK, input_tokens=5, output_tokens=5)
    both = TraceConversation(id="t", turns=(*trace((5, 5), (6, 5)).turns, silent))
    made = bound(both, gaps="recorded")
    assert [turn.gap for turn in made.conversations[0].turns] == [None, 2.0, None]
    assert made.notes == ("imported", "no recorded pause, so sent at once after the reply: 1 turn")
    with pytest.raises(WorkloadError, match=r"recorded pauses between turns, and workload 'w' has none"):
        bound(trace((5, 5)), gaps="recorded")


def many(count: int, long: Iterable[int] = ()) -> list[TraceConversation]:
    return [
        trace((500 if index in set(long) else 20, 5), name=f"c{index}", first=100 * index)
        for index in range(count)
    ]


def test_a_limit_keeps_the_same_conversations_in_any_order() -> None:
    chosen = [c.id for c in bound(*many(40), limit=7).conversations]
    assert len(chosen) == 7
    assert chosen == sorted(chosen, key=lambda name: int(name[1:]))
    assert {c.id for c in bound(*reversed(many(40)), limit=7).conversations} == set(chosen)
    assert [c.id for c in bound(*many(40), limit=7, sample=1.0).conversations] == chosen
    ids = {
        seed: [
            c.id
            for c in bind(
                Workload(name="w", conversations=tuple(many(40)), validity=HASHED),
                EmulatedTokenizer(),
                max_context=1000,
                policies=Policies(limit=7),
                seed=seed,
            ).conversations
        ]
        for seed in range(3)
    }
    assert len({tuple(chosen) for chosen in ids.values()}) == 3


def test_only_what_would_have_been_chosen_is_said_to_be_dropped() -> None:
    all_fit = [c.id for c in bound(*many(40), limit=7).conversations]
    long = {int(all_fit[0][1:]), int(all_fit[1][1:])}
    made = bound(*many(40, long), limit=7, context=100)
    assert len(made.conversations) == 7
    assert set(all_fit) - {c.id for c in made.conversations} == {f"c{index}" for index in long}
    assert {name for name, _ in made.dropped} == {f"c{index}" for index in long}
    backwards = bound(*reversed(many(40, long)), limit=7, context=100)
    assert set(backwards.dropped) == set(made.dropped)
    assert "7 of 40 conversations are used, chosen by a hash of their ids" in made.notes


def test_a_sample_is_a_share() -> None:
    made = bound(*many(400), sample=0.25)
    assert 70 <= len(made.conversations) <= 130
    assert made.notes[1] == f"a sample of 0.25 has {len(made.conversations)} of 400 conversations"
    wider = {c.id for c in bound(*many(400), sample=0.5).conversations}
    assert {c.id for c in made.conversations} < wider
    with pytest.raises(WorkloadError, match="a sample of 1e-09 of its 5 conversations holds none"):
        bound(*many(5), sample=1e-9)
