"""Azure and BurstGPT: CSV of times and lengths."""

from pathlib import Path

import pytest

from engines.emulator.tokenizer import EmulatedTokenizer
from jobs.errors import WorkloadError
from jobs.workload.bind import bind
from jobs.workload.conversation import HASHED, Workload
from jobs.workload.formats import load_workload
from jobs.workload.ideal import ideal_cached
from jobs.workload.policies import Policies

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:05.9799600,110,0
2023-11-16 18:18:03.9799600,512,27
"""
BURST = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
5,a,2,ChatGPT,472,18,490,Conversation log
45,,7,ChatGPT,1087,230,1317,API log
60,a,1.5,GPT-4,417,276,693,Conversation log
61,b,0,GPT-4,400,0,400,Conversation log
62,a,1,GPT-4,600,1,601,Conversation log
"""
OLD_BURST = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,0,417,Conversation log
"""


def load(path: Path, kind: str, text: str) -> Workload:
    file = path / "trace.csv"
    file.write_text(text)
    return load_workload(name="w", format=kind, paths=[file])


def test_azure_rows_are_conversations_of_one_turn(tmp_path: Path) -> None:
    workload = load(tmp_path, "azure", AZURE)
    assert workload.validity == HASHED
    assert [(c.id, c.start) for c in workload.conversations] == [
        ("trace-2", 0.0),
        ("trace-3", 0.052),
        ("trace-5", 60.0),
    ]
    assert [(c.turns[0].input_tokens, c.turns[0].output_tokens) for c in workload.conversations] == [
        (4808, 10),
        (3180, 8),
        (512, 27),
    ]
    assert "1 row dropped: it has no prompt or no reply" in workload.notes


def test_azure_of_the_later_year_states_the_zone(tmp_path: Path) -> None:
    text = (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:00.017335+00:00,2399,6\n"
    )
    assert [c.start for c in load(tmp_path, "azure", text).conversations] == [0.0, 0.007405]


def without(column: str, text: str) -> str:
    """The CSV text without a column."""
    rows = [line.split(",") for line in text.splitlines()]
    place = rows[0].index(column)
    return "\n".join(",".join([*row[:place], *row[place + 1 :]]) for row in rows)


@pytest.mark.parametrize("text", [BURST, without("Total tokens", BURST), without("Model", BURST)])
def test_burstgpt_columns_are_found_by_name(tmp_path: Path, text: str) -> None:
    workload = load(tmp_path, "burstgpt", text)
    session, single = workload.conversations
    assert [(t.input_tokens, t.output_tokens) for t in session.turns] == [(472, 18), (417, 276), (600, 1)]
    assert [turn.gap for turn in session.turns] == [None, 53.0, 0.5]
    assert (session.id, session.start, single.id, single.start) == ("trace-2", 0.0, "trace-3", 40.0)
    assert "1 row dropped: the request failed (Response tokens 0)" in workload.notes


def test_without_elapsed_times_gaps_are_unknown(tmp_path: Path) -> None:
    workload = load(tmp_path, "burstgpt", without("Elapsed time", BURST))
    assert [turn.gap for turn in workload.conversations[0].turns] == [None, None, None]


def test_the_older_burstgpt_has_no_sessions(tmp_path: Path) -> None:
    workload = load(tmp_path, "burstgpt", OLD_BURST)
    assert [(c.id, c.start, len(c.turns)) for c in workload.conversations] == [
        ("trace-2", 0.0, 1),
        ("trace-3", 40.0, 1),
    ]


def test_nothing_is_shared(tmp_path: Path) -> None:
    workload = load(tmp_path, "burstgpt", BURST)
    bound = bind(workload, EmulatedTokenizer(), max_context=5000)
    order = [(index, 0) for index in range(len(bound.conversations))]
    assert ideal_cached(bound, order, 16).tokens == 0
    assert all(turn.keep == 0 for c in bound.conversations for turn in c.turns)
    prompts = [prompt for c in bound.conversations for prompt in bound.prompts(c)]
    assert len({tuple(prompt[:4]) for prompt in prompts}) == len(prompts)


def test_gaps_of_a_trace_without_any_are_refused(tmp_path: Path) -> None:
    workload = load(tmp_path, "azure", AZURE)
    with pytest.raises(WorkloadError, match=r"workload\.gaps=recorded plays .* 'w' has none"):
        bind(workload, EmulatedTokenizer(), max_context=5000, policies=Policies(gaps="recorded"))


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        ("azure", "TIMESTAMP,ContextTokens\n1,2\n", r"GeneratedTokens is missing \(found: TIMESTAMP, Cont"),
        ("azure", "", "the first line must name the columns"),
        ("azure", AZURE + "yesterday,1,1\n", r"line 6: TIMESTAMP is 'yesterday'"),
        ("azure", AZURE + "2023-11-16 18:17:03,1,1\n", "line 6: the time lies before the first row's"),
        ("azure", AZURE + "2023-11-16 18:19:03,1\n", "line 6: the row has not as many fields"),
        ("azure", AZURE + "2023-11-16 18:19:03,1,1,1\n", "line 6: the row has not as many fields"),
        ("azure", AZURE + "2023-11-16 18:19:03,x,1\n", "line 6: 'ContextTokens' is 'x'; it must be a number"),
        (
            "azure",
            AZURE + "2023-11-16 18:19:03,9e15,1\n",
            r"line 6: 'ContextTokens' is 9e\+15, which no cont",
        ),
        ("azure", "TIMESTAMP,ContextTokens,ContextTokens,GeneratedTokens\n", "names ContextTokens twice"),
        (
            "azure",
            AZURE.splitlines()[0] + "\n",
            r"no conversation is left of trace\.csv: the files hold none",
        ),
        ("burstgpt", AZURE, "Timestamp, Request tokens, Response tokens are missing"),
        ("burstgpt", BURST + "1,a,1,GPT-4,600,1,601,x\n", "line 7: its time lies before that of line 6"),
        ("burstgpt", BURST + "nan,c,1,GPT-4,600,1,601,x\n", "line 7: 'Timestamp' is 'nan'"),
        (
            "burstgpt",
            OLD_BURST.splitlines()[0] + "\n1,G,1,0,1,x\n",
            "no conversation is left .*1 row dropped",
        ),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, kind: str, text: str, problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        load(tmp_path, kind, text)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\x1f\x8b\xff\xff")
    with pytest.raises(WorkloadError, match=r"is no CSV text .* compressed or binary"):
        load_workload(name="w", format="azure", paths=[tmp_path / "x.csv"])
