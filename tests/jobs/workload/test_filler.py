import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.emulator.tokenizer import EmulatedTokenizer
from jobs.workload.filler import MAX_VOCABULARY, Filler, filler_of
from jobs.workload.tokenizer import FolderTokenizer

FILLER = Filler(vocabulary=range(1000, 1100))


def test_tokens_are_pinned() -> None:
    # Pinned, and computed without the module: other tokens would be another workload under the same digest.
    assert FILLER.tokens("trace_0022", 7, 6) == [1001, 1082, 1005, 1012, 1040, 1068]
    assert FILLER.tokens("", -3, 4) == [1039, 1068, 1015, 1033]


def test_tokens_are_equal_in_every_process() -> None:
    code = (
        "from jobs.workload.filler import Filler;"
        "print(Filler(vocabulary=range(1000, 1100)).tokens('h\\xe4', 2**62, 40))"
    )
    root = Path(__file__).parents[3]
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
        )
        assert found.stdout.strip() == str(FILLER.tokens("h\xe4", 2**62, 40))


@given(st.text(max_size=4), st.integers(-(2**63), 2**63 - 1), st.integers(0, 64), st.integers(0, 64))
def test_a_partly_filled_block_is_the_beginning_of_the_whole_one(
    scope: str, block: int, part: int, more: int
) -> None:
    assert FILLER.tokens(scope, block, part + more)[:part] == FILLER.tokens(scope, block, part)


def test_another_block_or_scope_has_other_tokens() -> None:
    made = [
        tuple(FILLER.tokens(scope, block, 16)) for scope in ("", "a", "b", "1") for block in (-1, 0, 1, 11)
    ]
    assert len(set(made)) == len(made)


def test_filling_cuts_the_last_block() -> None:
    blocks = [5, 6, 7]
    whole = [token for block in blocks for token in FILLER.tokens("s", block, 8)]
    assert FILLER.fill("s", blocks, 8, 24) == whole
    assert FILLER.fill("s", blocks, 8, 17) == whole[:17]
    with pytest.raises(AssertionError):
        FILLER.fill("s", blocks, 8, 25)


def test_a_filler_crosses_processes_without_its_table() -> None:
    data = pickle.dumps(FILLER)
    assert len(data) < 1000
    assert pickle.loads(data) == FILLER
    assert pickle.loads(data).tokens("s", 1, 8) == FILLER.tokens("s", 1, 8)


def test_the_vocabulary_is_spread_evenly_and_is_all_of_a_small_one() -> None:
    assert list(filler_of([9, 3, 5]).vocabulary) == [3, 5, 9]
    many = filler_of(range(10, 10 + 2 * MAX_VOCABULARY))
    assert list(many.vocabulary) == list(range(10, 10 + 2 * MAX_VOCABULARY, 2))


def test_plain_tokens_are_no_special_ones(model_folder: Path) -> None:
    tokenizer = FolderTokenizer(model_folder)
    plain = tokenizer.plain_tokens()
    assert len(plain) == 95  # printable ASCII of a byte-level vocabulary
    assert all(tokenizer.decode([token]).isprintable() for token in plain)
    assert not set(plain) & set(range(256, 261))
    assert tokenizer.decode(tokenizer.encode("H\u00e4?")) == "H\u00e4?"
    emulated = EmulatedTokenizer()
    markers = set(emulated.render([("user", "x"), ("tool", "y")])) - set(emulated.encode("xy"))
    assert markers - set(emulated.encode("x")) - set(emulated.encode("y"))
    assert not set(emulated.plain_tokens()) & set(range(16))
    assert emulated.decode([16, 17]) == emulated.text(16) + emulated.text(17)
