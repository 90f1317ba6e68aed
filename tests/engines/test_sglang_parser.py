"""Every SGLang command line we can write, parsed by a parser with SGLang's own options.

`sglang_options.json` lists them as SGLang's source has them (`make_sglang_options.py` wrote it); why it is a
list and no installed SGLang, docs/decisions/0004-sglang-options.md says.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from engines.acceptance import Acceptance
from engines.base import Site
from engines.sglang import SglangEngine
from engines.sglang_flags import OWNED, PINNED, SWITCHES, VALUES
from engines.sglang_speculation import METHODS
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import CacheStrategy, Decode

LISTED = json.loads((Path(__file__).parent / "sglang_options.json").read_text())
ENGINE = SglangEngine()
LAYOUTS = (
    Layout(),
    Layout(tp=2),
    Layout(dp=2),
    Layout(tp=2, dp=2),
    Layout(tp=4, expert_parallel=True),
    Layout(pp=2),
)
CACHES = (
    CacheStrategy(),
    CacheStrategy(prefix_caching=False, block_size=32),
    CacheStrategy(prefix_caching=True, kv_dtype="fp8_e5m2"),
)
DECODES = (
    Decode(max_num_seqs=64),
    Decode(max_num_seqs=64, max_num_batched_tokens=4096, async_scheduling=False, cuda_graphs="none"),
    Decode(max_num_seqs=64, chunked_prefill=False, attention_backend="triton", cuda_graphs="full"),
    Decode(max_num_seqs=64, chunked_prefill=True, cuda_graphs="full_decode_only"),
)
OPTIONS: dict[str, dict[str, Any]] = {
    "draft_window_size": {"draft_window_size": 512, "draft_sink_size": 4},
    "attention_mode": {"attention_mode": "decode", "draft_kv_cache_dtype": "fp8_e4m3"},
    "use_rejection_sampling": {"use_rejection_sampling": True},
    "ngram_match_type": {"ngram_match_type": "PROB", "ngram_capacity": 100_000, "ngram_max_trie_depth": 12},
}
FLAGS: tuple[dict[str, Any], ...] = (
    {"mem_fraction_static": 0.85},
    {
        "max_total_tokens": 100_000,
        "schedule_policy": "lpm",
        "load_balance_method": "total_tokens",
        "enable_hierarchical_cache": True,
        "hicache_size": 8,
        "trust_remote_code": True,
        "cuda_graph_bs_decode": [1, 2, 4, 8],
    },
)


class Refusing(argparse.ArgumentParser):
    """A parser that raises instead of leaving the process."""

    def error(self, message: str) -> Any:
        """Raise what the parser has to say."""
        raise AssertionError(message)


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    """A parser of SGLang's options: their spellings, kinds of value and choices."""
    made = Refusing(allow_abbrev=False)
    for option in LISTED["options"]:
        if option["kind"] == "switch":
            made.add_argument(*option["options"], action="store_true")
            continue
        kind = {"int": int, "float": float}.get(option["kind"], str)
        given: dict[str, Any] = {"nargs": option["nargs"]} if option["nargs"] else {}
        made.add_argument(*option["options"], type=kind, choices=option["choices"], **given)
    return made


def drafters() -> Iterator[Drafter]:
    yield Drafter()
    for name, method in METHODS.items():
        model = "a/head" if method.needs_model else None
        drafter = Drafter(method=name, k=7, model=model, stateful=name == "ngram")
        yield drafter
        if method.forced:
            yield replace(drafter, acceptance=Acceptance(alpha=0.74))
        for key, values in OPTIONS.items():
            if key in method.options:
                yield replace(drafter, options=values)


def test_every_command_line_is_one_that_sglang_parses(
    parser: argparse.ArgumentParser, record_property: Any
) -> None:
    plain = EngineConfig(
        engine="sglang",
        version="0.5.23",
        model=Model(name="m", path="some/model"),
        python="/env/bin/python",
    )
    parsed = refused = 0
    caches = cycle(CACHES)
    grid = [
        *product(drafters(), LAYOUTS, DECODES, FLAGS[:1]),
        *product((Drafter(),), LAYOUTS, DECODES, FLAGS[1:]),
    ]
    for drafter, layout, decode, flags in grid:
        arm = replace(plain, drafter=drafter, layout=layout, cache=next(caches), decode=decode, flags=flags)
        if ENGINE.refusals(arm):
            refused += 1
            continue
        argv = ENGINE.command(arm, Site(port=1, directory=Path("/site"))).argv
        found = parser.parse_args(argv[3:])
        assert (found.tp_size, found.dp_size, found.enable_metrics) == (layout.tp, layout.dp, True)
        assert bool(found.speculative_algorithm) != drafter.is_none
        parsed += 1
    record_property("parsed", parsed)
    assert parsed > 600
    assert 0 < refused < parsed


def test_every_flag_we_know_is_an_option_of_its_kind() -> None:
    kinds = {option: entry["kind"] for entry in LISTED["options"] for option in entry["options"]}
    known = {name: kinds.get("--" + name.replace("_", "-")) for name in (*SWITCHES, *VALUES, *OWNED, *PINNED)}
    assert [name for name, kind in known.items() if kind is None] == []
    assert {name for name in SWITCHES if known[name] != "switch"} == set()
    assert {name for name in VALUES if known[name] == "switch"} == set()


def test_the_list_is_of_the_version_the_adapter_was_written_for() -> None:
    assert ENGINE.written_for == f"SGLang {LISTED['version']}"
    assert len(LISTED["options"]) > 400
