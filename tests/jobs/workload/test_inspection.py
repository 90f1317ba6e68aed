import json
from array import array
from pathlib import Path

import pytest

from engines.emulator.tokenizer import EmulatedTokenizer
from jobs.workload.bind import bind
from jobs.workload.conversation import Conversation, Message, Turn
from jobs.workload.formats import load_workload
from jobs.workload.ideal import ideal_cached
from jobs.workload.inspection import ConversationShape, Inspection, Spread, TurnShape
from jobs.workload.shapes import bound_shape, text_shape, trace_shape
from jobs.workload.trace import TraceConversation, TraceTurn

MOONCAKE = Path(__file__).resolve().parents[4] / "shared" / "data" / "mooncake" / "conversation_trace.jsonl"


def shape(*turns: tuple[int, str], scope: str = "", block_size: int = 4) -> ConversationShape:
    """(prompt length, a letter for each block) a turn."""
    return ConversationShape(
        turns=[
            TurnShape(input_tokens=length, output_tokens=5, blocks=array("q", map(ord, blocks)))
            for length, blocks in turns
        ],
        block_size=block_size,
        scope=scope,
    )


def inspected(*shapes: ConversationShape) -> Inspection:
    inspection = Inspection()
    for one in shapes:
        inspection.add(one)
    return inspection


def test_a_growing_prompt_finds_what_the_turn_before_left() -> None:
    found = inspected(shape((9, "ab"), (13, "abc"), (21, "abcde")))
    assert (found.conversations, found.requests) == (1, 3)
    assert [turn.cached_tokens for turn in found.by_turn] == [0, 8, 12]
    assert [turn.prompt_tokens for turn in found.by_turn] == [9, 13, 21]
    assert found.hit_rate == pytest.approx(20 / 43)
    assert (found.blocks, found.repeated_blocks) == (10, 5)
    assert found.block_hit_rate == pytest.approx(0.5)
    assert found.first_turn_sharing == 0.0


def test_the_last_token_of_a_prompt_is_always_computed() -> None:
    again = inspected(shape((8, "ab")), shape((8, "ab")))
    assert [turn.cached_tokens for turn in again.by_turn] == [4]
    assert again.repeated_blocks == 2
    longer = inspected(shape((9, "ab")), shape((9, "ab")))
    assert [turn.cached_tokens for turn in longer.by_turn] == [8]


def test_a_block_counts_with_all_that_stands_before_it() -> None:
    found = inspected(shape((9, "ab")), shape((9, "xb")), shape((13, "xyb")))
    assert found.repeated_blocks == 1  # the x of the third
    assert found.hit_rate == pytest.approx(4 / 31)


def test_a_prompt_that_forks_finds_the_common_part_only() -> None:
    found = inspected(shape((17, "abcd"), (17, "abxd"), (17, "abcd")))
    assert [turn.cached_tokens for turn in found.by_turn] == [0, 8, 16]


def test_scopes_keep_equal_ids_apart() -> None:
    apart = inspected(shape((9, "ab"), scope="one"), shape((9, "ab"), scope="two"))
    assert (apart.repeated_blocks, apart.first_turn_sharing) == (0, 0.0)
    together = inspected(shape((9, "ab"), scope="one"), shape((9, "ab"), scope="one"))
    assert (together.repeated_blocks, together.first_turn_sharing) == (2, pytest.approx(16 / 18))


def test_sharing_counts_first_turns_of_other_conversations_only() -> None:
    found = inspected(shape((9, "ab"), (13, "abc")), shape((13, "abx")), shape((6, "zz")))
    # the first two start with the 8 tokens of "ab"; the second turn of the first does not count
    assert found.first_turn_sharing == pytest.approx((8 + 8) / (9 + 13 + 6))


def test_a_last_block_that_is_not_full_weighs_its_tokens() -> None:
    found = inspected(shape((6, "ab")), shape((6, "ab")))
    assert found.first_turn_sharing == 1.0
    assert found.hit_rate == pytest.approx(4 / 12)  # an engine caches whole blocks
    assert found.block_hit_rate == pytest.approx(0.5)  # a trace counts its own


def test_unknown_content_leaves_reuse_unknown_not_zero() -> None:
    turn = TurnShape(input_tokens=10, output_tokens=None)
    found = inspected(ConversationShape(turns=[turn, turn], block_size=16))
    assert (found.hit_rate, found.block_hit_rate, found.first_turn_sharing) == (None, None, None)
    assert found.by_turn == []
    assert len(found.output_tokens) == 0
    assert list(found.context_tokens) == [10]


def test_times_are_kept_where_they_are_known() -> None:
    turns = [
        TurnShape(input_tokens=10, output_tokens=2),
        TurnShape(input_tokens=20, output_tokens=7, gap=1.5),
    ]
    found = inspected(
        ConversationShape(turns=turns, block_size=16, start=3.0),
        ConversationShape(turns=turns, block_size=16),
    )
    assert list(found.gaps) == [1.5, 1.5]
    assert list(found.starts) == [3.0]
    assert list(found.context_tokens) == [27, 27]


def test_a_spread_is_of_type_7() -> None:
    spread = Spread.of(array("q", [4, 1, 2, 3]))
    assert spread == Spread(count=4, minimum=1, median=2.5, mean=2.5, p95=pytest.approx(3.85), maximum=4)
    assert Spread.of(array("q")) is None


def user(text: str, reply: str | None, **more: float) -> Turn:
    return Turn(messages=(Message(role="user", content=text),), reply=reply, **more)  # type: ignore[arg-type]


def test_text_is_counted_as_the_replay_sends_it() -> None:
    tokenizer = EmulatedTokenizer()
    talk = Conversation(
        id="a",
        turns=(user("one two three", "four five"), user("six", "seven", gap=2.0, output_tokens=40)),
        start=1.0,
    )
    found = text_shape(talk, tokenizer, 4)
    first = tokenizer.render([("user", "one two three")])
    second = tokenizer.render([("user", "one two three"), ("assistant", "four five"), ("user", "six")])
    assert [turn.input_tokens for turn in found.turns] == [len(first), len(second)]
    assert [turn.output_tokens for turn in found.turns] == [2, 40]
    assert [turn.gap for turn in found.turns] == [None, 2.0]
    assert found.start == 1.0
    reuse = inspected(text_shape(talk, tokenizer, 4))
    assert reuse.by_turn[1].cached_tokens == len(first) // 4 * 4


def test_a_turn_without_reply_leaves_history_and_output_open() -> None:
    tokenizer = EmulatedTokenizer()
    found = text_shape(Conversation(id="a", turns=(user("one", None), user("two", None))), tokenizer, 4)
    assert [turn.output_tokens for turn in found.turns] == [None, None]
    assert found.turns[1].input_tokens == len(tokenizer.render([("user", "one"), ("user", "two")]))


def test_texts_share_the_whole_blocks_that_they_start_with() -> None:
    tokenizer = EmulatedTokenizer()
    system = Message(role="system", content="word " * 50)
    talks = [
        Conversation(id=name, turns=(Turn(messages=(system, Message(role="user", content=name)), reply="x"),))
        for name in ("alpha", "bravo")
    ]
    found = inspected(*(text_shape(talk, tokenizer, 16) for talk in talks))
    prompts = [tokenizer.render([("system", "word " * 50), ("user", talk.id)]) for talk in talks]
    same = next(i for i, (a, b) in enumerate(zip(*prompts, strict=False)) if a != b) // 16 * 16
    assert same >= 48
    assert found.first_turn_sharing == pytest.approx(2 * same / sum(map(len, prompts)))
    assert found.by_turn[0].cached_tokens == same


def test_traces_keep_their_own_blocks_and_lengths_know_no_content() -> None:
    turn = TraceTurn(blocks=[1, 2], block_size=64, input_tokens=100, output_tokens=9, gap=3.0)
    trace = TraceConversation(id="a", turns=(turn,), start=5.0, scope="s")
    found = inspected(trace_shape(trace, content_known=True), trace_shape(trace, content_known=True))
    assert found.block_sizes == {64}
    assert found.hit_rate == pytest.approx(64 / 200)
    assert list(found.output_tokens) == [9, 9]
    lengths = inspected(trace_shape(trace, content_known=False))
    assert lengths.hit_rate is None
    assert lengths.block_sizes == set()


@pytest.mark.parametrize("size", [4, 16, 64])
def test_what_is_bound_has_the_shape_of_what_was_read(size: int) -> None:
    tokenizer = EmulatedTokenizer()
    workload = load_workload(name="w", format="builtin", paths=[])
    read, bound = Inspection(), Inspection()
    for conversation in workload.conversations:
        assert isinstance(conversation, Conversation)
        read.add(text_shape(conversation, tokenizer, size))
    tokens = bind(workload, tokenizer, max_context=10**6)
    for one in tokens.conversations:
        bound.add(bound_shape(one, size))
    assert bound == read
    order = [(index, 0) for index in range(len(tokens.conversations))]
    ideal = ideal_cached(tokens, order, size)
    prompt = sum(turn.prompt_tokens for turn in read.by_turn)
    served = sum(turn.cached_tokens for turn in read.by_turn)
    assert prompt == ideal.prompt_tokens
    # the bound may serve a block from a prompt that ended with it, whichever came first
    assert ideal.tokens - size * read.requests <= served <= ideal.tokens
    assert served > 0


@pytest.mark.skipif(not MOONCAKE.is_file(), reason="the public traces are not here")
def test_the_mooncake_rows_repeat_36_64_percent_of_their_blocks() -> None:
    found = Inspection()
    for number, line in enumerate(MOONCAKE.read_text().splitlines()):
        row = json.loads(line)
        turn = TraceTurn(
            blocks=row["hash_ids"],
            block_size=512,
            input_tokens=row["input_length"],
            output_tokens=row["output_length"],
        )
        found.add(
            trace_shape(
                TraceConversation(id=str(number), turns=(turn,), start=row["timestamp"] / 1e3),
                content_known=True,
            )
        )
    assert found.conversations == found.requests == 12_031
    assert (found.blocks, found.blocks - found.repeated_blocks) == (288_500, 182_790)
    assert found.block_hit_rate == pytest.approx(0.3664, abs=5e-5)
    inputs, outputs = Spread.of(found.input_tokens), Spread.of(found.output_tokens)
    assert inputs is not None
    assert outputs is not None
    assert (inputs.mean, inputs.maximum) == (pytest.approx(12_035.06, abs=0.005), 126_195)
    assert outputs.mean == pytest.approx(342.62, abs=0.005)
    assert max(found.starts) - min(found.starts) == pytest.approx(3536.999)
