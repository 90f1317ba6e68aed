"""`specload workload inspect`: the table, the picture, and one paragraph for each error."""

import json
from pathlib import Path

import pytest
import tokenizers
from PIL import Image

from orchestrator import cli
from orchestrator.workload_tables import grouped

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PNG_BYTES = b"\x89PNG"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def chat(path, turns=2):
    messages = []
    for turn in range(turns):
        messages += [
            {"role": "user", "content": f"question {turn} about the deployment of a service"},
            {"role": "assistant", "content": "an answer of some words"},
        ]
    path.write_text("".join(json.dumps({"id": f"c{i}", "messages": messages}) + "\n" for i in range(3)))
    return path


def inspect(*words):
    return cli.main(["workload", "inspect", *map(str, words)])


def row(out, name):
    (line,) = [line for line in out.splitlines() if line.strip().startswith(name)]
    return " ".join(line.split())


def test_the_format_is_told_and_said(tmp_path, capsys):
    assert inspect(chat(tmp_path / "talk.jsonl")) == 0
    out = capsys.readouterr().out
    assert "talk.jsonl (format chat_jsonl, told by its content)" in out
    assert "emulated tokenizer: about 4 characters a token" in out
    assert row(out, "conversations") == "conversations 3"
    assert row(out, "requests") == "requests 6"
    assert "recorded (real text: acceptance on it means something)" in out
    # three equal conversations: everything but the first one's new text repeats
    assert row(out, "shared first turns").startswith("shared first turns")
    assert "picture: results/workloads/talk.png" in out
    assert (tmp_path / "results/workloads/talk.png").read_bytes().startswith(PNG_BYTES)
    with Image.open(tmp_path / "results/workloads/talk.png") as image:
        assert min(image.size) > 900


def test_a_format_that_is_named_is_not_told(tmp_path, capsys):
    assert inspect(chat(tmp_path / "talk.jsonl"), "--format", "chat_jsonl", "--picture", "a.svg") == 0
    out = capsys.readouterr().out
    assert "talk.jsonl (format chat_jsonl)" in out
    assert "<svg" in Path("a.svg").read_text()


def test_the_set_that_is_brought_along_needs_no_file(capsys):
    assert inspect() == 0
    assert "(format builtin)" in capsys.readouterr().out
    assert Path("results/workloads/builtin.png").is_file()


def test_several_files_are_one_workload_and_a_picture_is_called_after_their_format(tmp_path, capsys):
    first, second = chat(tmp_path / "a.jsonl"), tmp_path / "b.jsonl"
    second.write_text(first.read_text().replace('"id": "c', '"id": "d'))
    assert inspect(first, second) == 0
    out = capsys.readouterr().out
    assert "2 files (format chat_jsonl" in out
    assert row(out, "conversations") == "conversations 6"
    assert Path("results/workloads/chat_jsonl.png").is_file()


def test_a_workload_without_replies_says_how_to_get_them(tmp_path, capsys):
    file = tmp_path / "question.jsonl"
    file.write_text(json.dumps({"question_id": 1, "category": "x", "turns": ["one", "two"]}))
    assert inspect(file) == 0
    out = capsys.readouterr().out
    assert "2 of them without a recorded reply" in out
    assert "`specload workload record`" in out
    assert row(out, "reply tokens of a request").endswith("0")


def test_the_block_size_is_that_of_the_cache(tmp_path, capsys):
    assert inspect(chat(tmp_path / "talk.jsonl", turns=6), "--block-size", "4") == 0
    assert "whole blocks of 4 tokens" in capsys.readouterr().out


def test_a_context_that_holds_everything_replays_what_the_files_hold(tmp_path, capsys):
    assert inspect(chat(tmp_path / "talk.jsonl", turns=6), "--max-context", "10000") == 0
    looked, replayed = capsys.readouterr().out.split("what a sweep replays in a context of 10,000 tokens")
    assert "(workload.fit=drop)" in replayed
    for name in (
        "conversations",
        "requests",
        "ideal prefix-hit rate",
        "shared first turns",
        "prompt tokens of",
    ):
        assert row(looked, name) == row(replayed, name)
    assert "dropped" not in replayed


def test_what_does_not_fit_is_counted_by_reason(tmp_path, capsys):
    file = chat(tmp_path / "talk.jsonl", turns=2)
    with file.open("a") as out:
        for name, words in (("long", 400), ("longer", 700)):
            ask = {"role": "user", "content": "word " * words}
            out.write(
                json.dumps({"id": name, "messages": [ask, {"role": "assistant", "content": "yes"}]}) + "\n"
            )
    assert inspect(file, "--max-context", "200") == 0
    out = capsys.readouterr().out
    assert "- 2 conversations dropped: needs " in out
    assert "tokens; the model's context holds 200" in out
    assert row(out.split("what a sweep replays")[1], "conversations") == "conversations 3"


def test_a_context_too_small_for_all_is_an_answer(tmp_path, capsys):
    assert inspect(chat(tmp_path / "talk.jsonl"), "--max-context", "5") == 0
    assert "replays nothing: workload 'chat_jsonl': none of its 3 conversations fits" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_workload_without_replies_cannot_be_replayed_yet(tmp_path, capsys):
    file = tmp_path / "question.jsonl"
    file.write_text(json.dumps({"question_id": 1, "category": "x", "turns": ["one", "two"]}))
    assert inspect(file, "--max-context", "4096") == 0
    assert "replays nothing: " in capsys.readouterr().out


def test_reasons_that_differ_in_numbers_are_one():
    dropped = [
        ("a", "needs 5000 tokens; the model's context holds 4096"),
        ("b", "needs 12000 tokens; the model's context holds 4096"),
        ("c", "too odd"),
    ]
    assert grouped(dropped) == [
        ("needs 5,000 to 12,000 tokens; the model's context holds 4,096", "2 conversations"),
        ("too odd", "1 conversation"),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.jsonl"], "workload file gone.jsonl does not exist"),
        (["gone.jsonl", "--format", "chat_jsonl"], "workload file gone.jsonl does not exist"),
        (["."], "is a folder: name its files"),
        (["odd.json"], "its format cannot be told"),
        (["talk.jsonl", "--format", "parquet"], "known formats: builtin"),
        (["talk.jsonl", "--format", "spec_bench"], "expected a Spec-Bench question"),
        (["cut.jsonl"], "cut.jsonl, line 1: the JSON is truncated"),
        (["empty.jsonl"], "empty.jsonl is empty"),
        (["talk.jsonl", "--picture", "picture.gif"], "a picture ends with .png, .svg, .pdf"),
        (["talk.jsonl", "--picture", "nowhere/a.png"], "the folder nowhere does not exist"),
        (["talk.jsonl", "--tokenizer", "nowhere"], "--tokenizer nowhere is no folder"),
        (["talk.jsonl", "--tokenizer", "."], "--tokenizer . has no tokenizer.json"),
        (["talk.jsonl", "--fit", "drop"], "add --max-context N"),
        (
            ["talk.jsonl", "--fit", "scale", "--max-context", "99"],
            "this is text; choose drop or truncate_oldest",
        ),
    ],
)
def test_what_the_user_can_fix_is_one_paragraph_and_exit_code_2(tmp_path, capsys, words, message):
    chat(tmp_path / "talk.jsonl")
    (tmp_path / "odd.json").write_text('{"prompt": "x"}')
    (tmp_path / "cut.jsonl").write_text('{"messages": [{"role": "user", "content": "he')
    (tmp_path / "empty.jsonl").write_text("\n")
    assert inspect(*words) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.rglob("*.png"))


@pytest.mark.parametrize("words", [["--block-size", "0"], ["--max-context", "many"]])
def test_a_number_that_is_none_is_a_usage_error(capsys, words):
    with pytest.raises(SystemExit) as left:
        inspect(*words)
    assert left.value.code == 2
    assert "is no whole number of 1 or more" in capsys.readouterr().err


def test_help_of_both_commands_is_reached(capsys):
    for command in ("inspect", "record"):
        with pytest.raises(SystemExit) as left:
            cli.main(["workload", command, "--help"])
        assert left.value.code == 0
        assert f"\nexample:\n  specload workload {command} " in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        cli.main(["workload", "paint"])
    assert left.value.code == 2


def test_a_trace_of_lengths_knows_no_sharing(tmp_path, capsys):
    file = tmp_path / "azure.csv"
    file.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    )
    assert inspect(file, "--max-context", "4096") == 0
    out = capsys.readouterr().out
    assert "azure.csv (format azure, told by its content)" in out
    assert "lengths: counted by the trace" in out
    assert "hashed (text is made up for it: acceptance on it means nothing)" in out
    looked, replayed = out.split("what a sweep replays")
    for part in (looked, replayed):
        assert row(part, "ideal prefix-hit rate").startswith(
            "ideal prefix-hit rate - the trace tells lengths"
        )
        assert "repeated blocks" not in part
    assert row(looked, "arrivals").startswith("arrivals 4.3 s")
    assert Path("results/workloads/azure.png").is_file()


def test_a_trace_of_hashes_is_counted_in_its_own_blocks_and_scales(tmp_path, capsys):
    file = tmp_path / "trace.jsonl"
    rows = [(0, 1100, 10, [1, 2, 3]), (1000, 1600, 20, [1, 2, 4, 5]), (2000, 600, 30, [8, 9])]
    file.write_text(
        "".join(
            json.dumps({"timestamp": t, "input_length": i, "output_length": o, "hash_ids": h}) + "\n"
            for t, i, o, h in rows
        )
    )
    assert inspect(file, "--max-context", "1000", "--fit", "scale") == 0
    looked, replayed = capsys.readouterr().out.split("what a sweep replays")
    assert "whole blocks of 512 tokens, the size of the trace" in looked
    assert row(looked, "repeated blocks") == "repeated blocks 22.22% of 9 blocks came before, 7 are distinct"
    assert row(looked, "ideal prefix-hit rate").startswith(f"ideal prefix-hit rate {1024 / 3300:.2%}")
    assert "all lengths are scaled by" in replayed
    assert row(replayed, "repeated blocks") == row(looked, "repeated blocks")


def test_a_models_own_tokenizer_counts_text(tmp_path, capsys):
    folder = tmp_path / "model"
    folder.mkdir()
    # one token a word, and a template that adds none
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.save(str(folder / "tokenizer.json"))
    template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    assert inspect(chat(tmp_path / "talk.jsonl"), "--tokenizer", folder) == 0
    out = capsys.readouterr().out
    assert f"lengths: tokenizer of {folder}" in out
    prompts = row(out, "prompt tokens of a request").replace("│", " ").split()
    assert prompts[5:] == ["8", "14", "14.50", "21", "21", "6"]  # 8 words, and 8 + 5 + 8 in the second turn


def test_conversations_of_very_many_turns_can_be_drawn(tmp_path, capsys):
    assert inspect(chat(tmp_path / "talk.jsonl", turns=90), "--picture", "many.pdf") == 0
    assert Path("many.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.skipif(not DATA.is_dir(), reason="the public traces are not here")
def test_the_mooncake_trace_repeats_36_64_percent_of_its_blocks(capsys):
    assert inspect(DATA / "mooncake" / "conversation_trace.jsonl") == 0
    out = capsys.readouterr().out
    repeated = "repeated blocks 36.64% of 288,500 blocks came before, 182,790 are distinct"
    assert row(out, "repeated blocks") == repeated
    assert "12,035.06" in row(out, "prompt tokens of a request")
    assert "342.62" in row(out, "reply tokens of a request")


@pytest.mark.skipif(not DATA.is_dir(), reason="the public traces are not here")
def test_the_sessions_with_subagents_are_more_conversations_than_files(capsys):
    files = sorted((DATA / "weka").glob("*.json"))
    assert inspect(*files) == 0
    out = capsys.readouterr().out
    assert int(row(out, "conversations").split()[-1]) > len(files)
    assert "whole blocks of 64 tokens, the size of the trace" in out


@pytest.mark.skipif(not DATA.is_dir(), reason="the public traces are not here")
def test_the_trajectories_have_4_to_13_turns(capsys):
    assert inspect(*sorted((DATA / "swe_agent").glob("*.traj"))) == 0
    out = capsys.readouterr().out
    turns = row(out, "turns of a conversation").replace("│", " ").split()
    assert (turns[4], turns[8], turns[9]) == ("4", "13", "8")


@pytest.mark.skipif(not DATA.is_dir(), reason="the public traces are not here")
def test_both_turns_of_spec_bench_are_there(capsys):
    assert inspect(DATA / "spec_bench" / "question.jsonl") == 0
    out = capsys.readouterr().out
    assert row(out, "conversations") == "conversations 480"
    assert row(out, "requests").startswith("requests 560 560 of them without")
