import json
from pathlib import Path

import pytest

from engines.emulator.tokenizer import EmulatedTokenizer
from jobs.errors import WorkloadError
from jobs.workload.bind import bind
from jobs.workload.conversation import HASHED
from jobs.workload.filler import Filler
from jobs.workload.formats import load_workload
from jobs.workload.ideal import ideal_cached
from jobs.workload.import_log import ImportLog
from jobs.workload.mooncake import BLOCK, read_mooncake
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload
from jobs.workload.trace import TraceConversation

TRACE = Path(__file__).parents[4] / "shared" / "data" / "mooncake" / "conversation_trace.jsonl"
SHARED = pytest.mark.skipif(not TRACE.exists(), reason="the public traces are not here")


def write(path: Path, *rows: tuple[int, int, list[int]]) -> Path:
    """Rows of (time in ms, prompt tokens, ids)."""
    file = path / "t.jsonl"
    with file.open("w") as out:
        for time, tokens, ids in rows:
            row = {"timestamp": time, "input_length": tokens, "output_length": 9, "hash_ids": ids}
            out.write(json.dumps(row) + "\n")
    return file


def read(path: Path, *rows: tuple[int, int, list[int]]) -> list[TraceConversation]:
    return list(read_mooncake([write(path, *rows)], ImportLog(validity=HASHED)))


def ids(conversations: list[TraceConversation]) -> list[list[list[int]]]:
    return [[list(turn.blocks) for turn in conversation.turns] for conversation in conversations]


def test_a_row_continues_the_one_whose_whole_blocks_it_begins_with(tmp_path: Path) -> None:
    rows = [
        (0, 1100, [1, 2, 3]),
        (500, 1300, [1, 8, 9]),  # shares the first block only
        (2500, 2000, [1, 2, 4, 5]),  # the first row, and more
        (4000, 2100, [1, 2, 4, 6, 7]),  # whole blocks 1 2 4 of the row before
    ]
    made = read(tmp_path, *rows)
    assert ids(made) == [[[1, 2, 3], [1, 2, 4, 5], [1, 2, 4, 6, 7]], [[1, 8, 9]]]
    assert [c.id for c in made] == ["t-1", "t-2"]
    assert [c.start for c in made] == [0.0, 0.5]
    assert [turn.gap for turn in made[0].turns] == [None, 2.5, 1.5]
    assert {c.scope for c in made} == {"t"}


def test_a_common_system_prompt_links_nothing(tmp_path: Path) -> None:
    # After the first two, every row with only the first block whole ends with a block that many share.
    rows = [(0, 1100, [1, 2, 3]), (1, 600, [1, 4]), (2, 700, [1, 5]), (3, 1600, [1, 6, 7, 8])]
    assert ids(read(tmp_path, *rows)) == [[[1, 2, 3]], [[1, 4]], [[1, 5]], [[1, 6, 7, 8]]]


def test_a_fork_starts_a_conversation(tmp_path: Path) -> None:
    rows = [(0, 1100, [1, 2, 3]), (1, 1600, [1, 2, 4, 5]), (2, 1700, [1, 2, 6, 7])]
    assert ids(read(tmp_path, *rows)) == [[[1, 2, 3], [1, 2, 4, 5]], [[1, 2, 6, 7]]]


def test_a_repeated_prompt_goes_on(tmp_path: Path) -> None:
    rows = [(0, 1100, [1, 2, 3]), (1, 1101, [1, 2, 4]), (2, 1700, [1, 2, 5, 6])]
    assert ids(read(tmp_path, *rows)) == [[[1, 2, 3], [1, 2, 4], [1, 2, 5, 6]]]


def test_prompts_without_a_whole_block_stand_alone(tmp_path: Path) -> None:
    rows = [(0, 100, [1]), (1, 200, [2]), (2, 300, [1])]
    assert len(read(tmp_path, *rows)) == 3


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            '{"timestamp": 0, "input_length": 513, "output_length": 1, "hash_ids": [1]}',
            r"1 hash_ids for an input_length of 513, which is 2 blocks of 512",
        ),
        (
            '{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}',
            r"2 hash_ids for an input_length of 512, which is 1 block",
        ),
        ('{"timestamp": 0, "input_length": 5, "output_length": 1}', "`hash_ids` is not a list"),
        (
            '{"timestamp": 0, "input_length": -5, "output_length": 1, "hash_ids": []}',
            "'input_length' is -5; it must be a number of 0 or more",
        ),
        (
            f'{{"timestamp": 1{"0" * 400}, "input_length": 5, "output_length": 1, "hash_ids": [1]}}',
            "'timestamp' has more digits than a number of a trace can have",
        ),
        (
            '{"timestamp": 0, "input_length": 5, "output_length": 4000000000, "hash_ids": [1]}',
            r"'output_length' is 4e\+09, which no context holds",
        ),
        ('{"input_length": 5, "output_length": 1, "hash_ids": [1]}', "'timestamp' is missing"),
        (
            '{"timestamp": 0, "input_length": 5.5, "output_length": 1, "hash_ids": [1]}',
            "'input_length' is 5.5, not a whole number",
        ),
        (
            '{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [9223372036854775808]}',
            "more than 64 bits",
        ),
        ("[]", "expected an object with timestamp"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, line: str, problem: str) -> None:
    file = write(tmp_path, (0, 100, [1]))
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(WorkloadError, match=rf"t\.jsonl, line 2: .*{problem}"):
        list(read_mooncake([file], ImportLog(validity=HASHED)))


def test_rows_without_a_reply_are_dropped_and_counted(tmp_path: Path) -> None:
    file = write(tmp_path, (0, 100, [1]))
    row = {"timestamp": 1, "input_length": 100, "output_length": 0, "hash_ids": [2]}
    file.write_text(file.read_text() + json.dumps(row))
    workload = load_workload(name="m", format="mooncake", paths=[file])
    assert workload.turns == 1
    assert workload.validity == HASHED
    assert "1 row dropped: it has no prompt or no reply" in workload.notes


@SHARED
def test_the_facts_of_the_public_trace() -> None:
    workload = load_workload(name="mooncake", format="mooncake", paths=[TRACE])
    turns = [turn for conversation in workload.conversations for turn in conversation.turns]
    assert len(turns) == 12_031
    assert round(sum(turn.input_tokens for turn in turns) / len(turns), 2) == 12_035.06
    assert round(sum(turn.output_tokens for turn in turns) / len(turns), 2) == 342.62
    assert max(turn.input_tokens for turn in turns) == 126_195
    times = [json.loads(line)["timestamp"] for line in TRACE.read_text().splitlines()]
    assert max(times) - min(times) == 3_536_999
    ends = [
        conversation.start + sum(turn.gap or 0 for turn in conversation.turns)
        for conversation in workload.conversations
    ]
    assert round(1000 * max(ends)) == 3_536_999
    assert all(len(turn.blocks) == -(-turn.input_tokens // BLOCK) for turn in turns)
    assert sum(len(turn.blocks) for turn in turns) == 288_500
    # The ideal cache before grouping. The trace's figure counts partly filled blocks as blocks and lets every
    # block be served, so each is whole here and one more token follows, which is computed.
    rows = [
        TokenConversation(
            id=str(row),
            scope="trace",
            block_size=BLOCK,
            turns=(
                TokenTurn(
                    keep=0,
                    blocks=[*turn.blocks, -1 - row],
                    block_tokens=BLOCK * len(turn.blocks) + 1,
                    output_tokens=1,
                ),
            ),
        )
        for row, turn in enumerate(turns)
    ]
    whole = TokenWorkload(name="rows", conversations=rows, validity=HASHED, tokenizer="")
    ideal = ideal_cached(whole, [(row, 0) for row in range(len(rows))], BLOCK)
    hits = ideal.tokens / BLOCK
    assert hits == 288_500 - 182_790
    assert round(100 * hits / 288_500, 2) == 36.64


@SHARED
def test_the_public_trace_keeps_its_sharing_in_tokens() -> None:
    workload = load_workload(name="mooncake", format="mooncake", paths=[TRACE])
    assert len(workload.conversations) == 8108
    assert "12,031 rows without a session make 8,108 conversations" in workload.notes[0]
    bound = bind(workload, EmulatedTokenizer(), max_context=131_072)
    assert not bound.dropped
    assert sum(len(c.turns) for c in bound.conversations) == 12_031
    first, second = bound.conversations[0], bound.conversations[1]
    prompts = [next(bound.prompts(conversation)) for conversation in (first, second)]
    assert [len(prompt) for prompt in prompts] == [6758, 7322]
    common = next(i for i, (a, b) in enumerate(zip(*prompts, strict=False)) if a != b)
    assert common == BLOCK  # hash id 0 is in both, and nothing else
    filler = bound.filler
    assert isinstance(filler, Filler)
    assert set(prompts[0]) <= set(filler.vocabulary)


def test_a_conversation_does_not_go_back_in_time(tmp_path: Path) -> None:
    row = '{{"timestamp": {}, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]}}\n'
    (tmp_path / "m.jsonl").write_text(row.format(5) + row.format(1))
    with pytest.raises(
        WorkloadError, match=r"m\.jsonl, line 2: it continues line 1 and its timestamp lies bef"
    ):
        load_workload(name="m", format="mooncake", paths=[tmp_path / "m.jsonl"])
