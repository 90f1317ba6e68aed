"""`specload rules`: every rule of every engine, each with its line."""

import pytest

from engines.registry import ENGINES
from engines.rules import COMMON_RULES
from orchestrator import cli


def test_every_rule_of_every_engine_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules"]) == 0
    words = capsys.readouterr().out.split()
    for engine in ENGINES.values():
        assert [rule.name for rule in engine.rules if words.count(rule.name) != 1] == []
        assert engine.written_for.split()[0] in words


def test_one_engine_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "emulator"]) == 0
    out = capsys.readouterr().out
    assert "emulator_pp" in out
    assert COMMON_RULES[0].name in out
    assert "vllm_block_size" not in out


def test_an_unknown_engine_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["rules", "vlm"])
    assert left.value.code == 2
    assert "there is no engine 'vlm' (did you mean vllm?); choose from" in capsys.readouterr().err
