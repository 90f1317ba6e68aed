"""`specload recommend` on a folder of results: what it prints, and what it refuses."""

import json
import math
from dataclasses import replace

import pytest

from jobs.metric_names import METRICS
from orchestrator.commands.recommend import WIDTH, run
from orchestrator.errors import ConfigError
from orchestrator.pending import Segment
from tests.orchestrator.conftest import outcomes

RATIOS = {(3, 1): 1.3, (3, 4): 1.2, (7, 1): 1.6, (7, 4): 0.8}


@pytest.fixture
def folder(small_plan, tmp_path):
    """K=7 wins at C=1 and K=3 at C=4; 1000 C^0.7 tokens/s without a drafter."""
    plan = replace(small_plan, gpu_hour_price=2.0)
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    shift = 1.0
    for block in plan.blocks:
        for result in outcomes(plan, Segment(block=block, index=0, runs=block.runs)):
            shift = 2.002 - shift  # a noise of 0.1 %, back and forth
            value = 1000.0 * result.level**0.7 * RATIOS.get((result.k, result.level), 1.0) * shift
            figures = {name: value for name in METRICS if "tok_s" in name}
            cell = replace(result, metrics={**figures, "window/in_flight": result.level})
            path = tmp_path / "cells" / cell.cell
            path.mkdir(parents=True)
            (path / "result.json").write_text(json.dumps(cell.to_dict()))
    return tmp_path


def test_everything_as_json(folder, capsys):
    traffic = folder / "running.csv"
    traffic.write_text("time,running\n" + "".join(f"{60 * minute},1\n" for minute in range(60)))
    assert run([str(folder), "--traffic", str(traffic), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [section["name"] for section in told["sections"]] == ["recommendation", "cost", "fleet"]
    ranges = told["sections"][0]["rows"]
    assert [row["recommended"] for row in ranges] == ["tp1/ngram-k7", "tp1/ngram-k3"]
    edge = 4 ** (math.log(1.6 / 1.3) / (math.log(1.6 / 1.3) - math.log(0.8 / 1.2)))
    assert ranges[0]["to"] == pytest.approx(edge, rel=0.01)
    (schedule,) = told["schedules"]
    assert [step["k"] for step in schedule["by_load"]] == [7, 3]
    assert "model.name is 'm'" in schedule["refused"]  # the emulator has no such model: its rules say so
    best = told["sections"][2]["rows"][0]
    assert best["gained"] == pytest.approx(0.6 * 1000.0 * 86_400, rel=0.01)
    assert told["confirm"].endswith("plan.json --confirm 4")
    assert [card["advantage"] for card in told["decision"]["cards"]] == [
        "+60 % [+60, +60] total throughput at C=1", "+20 % [+20, +20] total throughput at C=4"
    ]  # fmt: skip
    assert [(row["over_baseline_at"], row["margin_at"]) for row in ranges] == [(1, 1), (4, 4)]
    assert told["deployments"] == []  # nobody kept a record of these engines


def test_the_same_for_people(folder, capsys):
    assert run([str(folder), "--price", "3"]) == 0
    text = capsys.readouterr().out
    assert "3 USD per device-hour" in text
    assert "running requests of one engine: 1 to 1: K=7, 2 on: K=3" in text
    to_copy = ("specload sweep", "engine does not take it")
    folded = [line for line in text.splitlines() if not line.strip().startswith(to_copy)]
    assert max(map(len, folded)) <= WIDTH


def test_why_in_sentences(folder, capsys):
    """Each figure with the level at which it holds, how each range ends, and what is undecided."""
    assert run([str(folder), "--explain"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    place = lines.index("Up to about C=1.6: tp1/ngram-k7 provisional")
    assert lines[place + 1] == "over the baseline +60 % [+60, +60] total throughput at C=1"
    assert lines[place + 2] == "over the runner-up +23 % [+23, +23] total throughput over tp1/ngram-k3 at C=1"
    assert lines[place + 3].startswith("range ends near C=1.6 (95 % interval ")
    assert "why wins against its baseline, and no other winner is ahead of it by estimate" in lines
    assert "Every arm that could be served has a verdict at each of its levels." in lines
    assert any(line.startswith("output cost: price of a million output tokens") for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--today", "tp1/none"], "go with --traffic FILE"),
        (["--price", "-1"], "gpu_hour_price is -1"),
        (["--servers", "0"], "--servers is 0"),
        (["--slo-ttft-ms", "0"], "slo.ttft_ms is 0"),
        (["--traffic", "x.csv", "--max-hold", "0"], "--max-hold is 0"),
    ],
)
def test_words_that_do_not_go_together(tmp_path, words, message):
    (tmp_path / "plan.json").touch()
    with pytest.raises(ConfigError, match=message):
        run([str(tmp_path), *words])
