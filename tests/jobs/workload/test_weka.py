import json
from pathlib import Path
from typing import Any

import pytest

from engines.emulator.tokenizer import EmulatedTokenizer
from jobs.errors import WorkloadError
from jobs.workload.bind import bind
from jobs.workload.conversation import HASHED
from jobs.workload.formats import load_workload
from jobs.workload.import_log import ImportLog
from jobs.workload.trace import TraceConversation
from jobs.workload.weka import read_weka

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "weka"
SHARED = pytest.mark.skipif(not FOLDER.exists(), reason="the public traces are not here")


def request(tokens: int, ids: list[int], **more: Any) -> dict[str, Any]:
    return {"type": "n", "t": 0.0, "in": tokens, "out": 5, "hash_ids": ids, **more}


def session(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "s", "block_size": 64, "hash_id_scope": "local", "requests": list(requests), **more}


def read(path: Path, *sessions: dict[str, Any]) -> tuple[list[TraceConversation], tuple[str, ...]]:
    log = ImportLog(validity=HASHED)
    files = []
    for number, data in enumerate(sessions):
        files.append(path / f"{number}.json")
        files[-1].write_text(json.dumps(data, indent=number))
    return list(read_weka(files, log)), log.notes


def test_a_last_block_has_an_id_or_gets_tokens_of_its_own(tmp_path: Path) -> None:
    [made], notes = read(
        tmp_path,
        session(
            request(128, [0, -7]),
            request(130, [0, -7], models="list1"),
            request(131, [0, -7]),
            request(131, [0, -7, 3]),
            models="list1",
        ),
    )
    assert [list(turn.blocks[:2]) for turn in made.turns] == [[0, -7]] * 4
    tails = [turn.blocks[2] for turn in made.turns[1:]]
    assert tails[2] == 3
    assert tails[0] != tails[1]
    assert all(-(2**63) <= tail < -(2**62) for tail in tails[:2])
    assert any("gets tokens of its own" in note for note in notes)
    assert read(tmp_path, session(request(130, [0, -7])))[0][0].turns[0].blocks[2] == tails[0]


def test_subagents_are_conversations_that_share_the_sessions_ids(tmp_path: Path) -> None:
    inner = {"type": "subagent", "t": 7.0, "requests": [request(64, [9])]}
    agent = {
        "type": "subagent",
        "t": 30.5,
        "tool_tokens": 10,
        "system_tokens": 20,
        "requests": [request(128, [1, 5]), inner, request(192, [1, 5, 6], t=9.0, think_time=2.5)],
    }
    lost = {"type": "subagent", "t": 40.0, "agent_id": "without telemetry"}
    made, notes = read(
        tmp_path, session(request(64, [1]), agent, lost, request(128, [1, 2], type="s", t=50.0))
    )
    assert [(c.id, len(c.turns), c.start, c.scope, c.head_tokens) for c in made] == [
        ("s", 2, 0.0, "s", 0),
        ("s/subagent-1", 2, 30.5, "s", 30),
        ("s/subagent-1/subagent-1", 1, 37.5, "s", 0),
    ]
    assert "1 subagent dropped: the trace has no requests of it" in notes
    bound = bind(
        load_workload(name="w", format="weka", paths=[tmp_path / "0.json"]),
        EmulatedTokenizer(),
        max_context=1000,
    )
    parent, agent_prompts = (list(bound.prompts(bound.conversations[index])) for index in (0, 1))
    assert parent[0] == agent_prompts[0][:64]
    assert parent[1][64:] != agent_prompts[0][64:]


def test_gaps_are_think_times_or_what_the_times_say(tmp_path: Path) -> None:
    [made], _ = read(
        tmp_path,
        session(
            request(64, [1], t=1.0, api_time=2.0, think_time=3.0),
            request(64, [1], t=10.0, api_time=1.0, think_time=0.5),
            request(64, [1], t=15.0, api_time=9.0),
            request(64, [1], t=16.0),
            request(64, [1], t=99.0),
        ),
    )
    assert [turn.gap for turn in made.turns] == [None, 0.5, 4.0, 0.0, None]


def test_ids_are_local_to_their_session_unless_it_says_global(tmp_path: Path) -> None:
    made, _ = read(
        tmp_path,
        session(request(64, [1])),
        session(request(65, [1]), id="b", hash_id_scope="global"),
        session(request(65, [1]), id="c", hash_id_scope="global"),
    )
    assert [c.scope for c in made] == ["s", "", ""]
    assert made[1].turns[0].blocks[1] != made[2].turns[0].blocks[1]


def test_requests_without_a_reply_and_empty_sessions_are_dropped(tmp_path: Path) -> None:
    made, notes = read(
        tmp_path, session(request(64, [1], out=0)), session(request(64, [1]), request(0, []), id="b")
    )
    assert [(c.id, len(c.turns)) for c in made] == [("b", 1)]
    assert "2 requests dropped: it has no prompt or no reply" in notes
    assert "1 session or subagent dropped: it has no request" in notes


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([1], "expected a WEKA session"),
        ({"id": "s", "requests": []}, "'block_size' is missing"),
        (session(hash_id_scope="worldwide"), "known scopes: local, global"),
        (session(request(64, [1], type="z")), r"requests\[0\]: the type is 'z'; known types: n, s, subagent"),
        (
            session(request(64, [1]), request(200, [1])),
            r"requests\[1\]: 1 hash_ids for a prompt of 200 tokens, which is 3 whole blocks of 64",
        ),
        (session(request(64, ["1"])), "not a list of whole numbers"),
        (session({"type": "n", "out": 1, "hash_ids": []}), "'in' is missing"),
    ],
)
def test_a_damaged_session_is_named(tmp_path: Path, data: Any, problem: str) -> None:
    with pytest.raises(WorkloadError, match=rf"0\.json.*{problem}"):
        read(tmp_path, data)


def test_a_prompt_that_shrinks_or_forks_keeps_the_common_whole_blocks(tmp_path: Path) -> None:
    read(
        tmp_path,
        session(
            request(200, [1, 2, 3, 4]),
            request(130, [1, 2, 3]),  # shrinks, within a block
            request(192, [1, 2, 9]),  # forks
            request(256, [1, 2, 9, 4]),
        ),
    )
    bound = bind(
        load_workload(name="w", format="weka", paths=[tmp_path / "0.json"]),
        EmulatedTokenizer(),
        max_context=1000,
    )
    [conversation] = bound.conversations
    assert [turn.keep for turn in conversation.turns] == [0, 128, 128, 192]
    prompts = list(bound.prompts(conversation))
    assert [len(prompt) for prompt in prompts] == [200, 130, 192, 256]
    assert [turn.prompt_tokens for turn in conversation.turns] == [200, 130, 192, 256]
    assert prompts[0][:130] == prompts[1]  # a partly filled block begins as the whole one
    assert prompts[2][:128] == prompts[0][:128]
    assert prompts[2][128:] != prompts[0][128:192]
    assert prompts[3][:192] == prompts[2]
    assert prompts[3][192:200] == prompts[0][192:200]  # the same id at the same place


@SHARED
def test_the_facts_of_the_public_sessions() -> None:
    workload = load_workload(name="weka", format="weka", paths=[FOLDER / "*.json"])
    assert workload.validity == HASHED
    assert {c.id: len(c.turns) for c in workload.conversations} == {
        "trace_0022": 7,
        "trace_0291": 20,
        "trace_0291/subagent-1": 5,
        "trace_0291/subagent-2": 7,
        "trace_0297": 5,
        "trace_0504": 3,
        "trace_0546": 4,
        "trace_0614": 7,
        "trace_0702": 8,
    }
    agents = {c.id: c.start for c in workload.conversations if "/" in c.id}
    assert agents == {"trace_0291/subagent-1": 1148.013, "trace_0291/subagent-2": 1180.553}
    totals = {
        path.stem: json.loads(path.read_text())["totals"]["combined_tokens"]["input"]
        for path in FOLDER.glob("*.json")
    }
    found: dict[str, int] = {}
    for conversation in workload.conversations:
        name = conversation.id.partition("/")[0]
        found[name] = found.get(name, 0) + sum(turn.input_tokens for turn in conversation.turns)
    assert found == totals
