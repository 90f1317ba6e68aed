"""Lines of vLLM server logs, as published and as version 0.32 writes them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.others.comparison import compare
from analysis.others.run import OtherResultsError
from analysis.others.server_log import read_log

Make = Callable[..., dict[str, Any]]
CAPACITY = "GPU KV cache size: 2,558,976 tokens, Maximum concurrency for 1,048,576 tokens per request: 2.44x"
DRAFTS = (
    "SpecDecoding metrics: Mean acceptance length: 2.52, Accepted throughput: 36.30 tokens/s, Drafted "
    "throughput: 71.64 tokens/s, Accepted: 363 tokens, Drafted: 716 tokens, Per-position acceptance rate: "
    "0.730, 0.506, 0.284, Avg Draft acceptance rate: 50.7%"
)


def log(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_published_lines(tmp_path: Path) -> None:
    found = read_log(log(tmp_path / "a.log", f"INFO 07-01 12:00:00 [kv_cache_utils.py:1] {CAPACITY}", DRAFTS))
    assert (found.kv_tokens, found.k) == (2_558_976, 3)
    assert found.mal == pytest.approx(2.52, abs=0.005)


def test_engines_add_up_and_a_restart_replaces(tmp_path: Path) -> None:
    lines = [
        f"(EngineCore_DP{rank} pid={pid}) INFO CPU KV cache size: {tokens} tokens, Maximum concurrency"
        for rank, pid, tokens in ((0, 1, "9,999"), (1, 2, "9,999"), (0, 3, "46,592"), (1, 4, "46,592"))
    ]
    assert read_log(log(tmp_path / "a.log", *lines)).kv_tokens == 2 * 46_592


def test_acceptance_is_pooled_over_the_lines(tmp_path: Path) -> None:
    """Of 0.32 with prompt lookup: 8 steps of K=3 drafted 22 tokens, not 24; then 100 steps accepted none."""
    first = DRAFTS.replace("2.52", "3.00").replace("363 tokens, Drafted: 716", "16 tokens, Drafted: 22")
    second = DRAFTS.replace("2.52", "1.00").replace("363 tokens, Drafted: 716", "0 tokens, Drafted: 300")
    assert read_log(log(tmp_path / "a.log", first)).mal == pytest.approx(3.0)
    assert read_log(log(tmp_path / "b.log", first, second)).mal == pytest.approx(1 + 16 / 108)


def test_another_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OtherResultsError, match="is it the log of a vLLM server"):
        read_log(log(tmp_path / "a.log", "hello"))


def test_a_comparison_with_the_logs_of_its_servers(tmp_path: Path, make_guidellm: Make) -> None:
    for name in ("base", "eagle"):
        (tmp_path / f"{name}.json").write_text(json.dumps(make_guidellm()), encoding="utf-8")
    paths = {
        "none": log(tmp_path / "base.log", CAPACITY),
        "eagle3": log(tmp_path / "eagle.log", CAPACITY.replace("2,558,976", "2,287,725"), DRAFTS),
    }
    logs = [f"{label}={path}" for label, path in paths.items()]
    given = {"baseline": [tmp_path / "base.json"], "arms": [f"eagle3={tmp_path / 'eagle.json'}"]}
    (row,) = compare(**given, logs=logs).rows  # type: ignore[arg-type]  # as named
    assert row.label == "eagle3-k3"
    assert row.mal == pytest.approx(2.52, abs=0.005)
    assert any(
        "KV caches of 2,287,725 tokens against 2,558,976 of the baseline (-10.6%)" in caveat
        for caveat in row.caveats
    )
    with pytest.raises(OtherResultsError, match="no run is of an arm with this label"):
        compare(**given, logs=[f"ngram={paths['none']}"])  # type: ignore[arg-type]  # as named
    with pytest.raises(OtherResultsError, match="is given as a baseline, but its server counted drafts"):
        compare(**given, logs=[f"none={paths['eagle3']}"])  # type: ignore[arg-type]  # as named
