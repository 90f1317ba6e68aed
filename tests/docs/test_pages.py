"""Helpers of the tests of the documentation, and the pages whose commands need more than a test has."""

import shlex

import pytest

from orchestrator.cli import COMMANDS
from tests.docs.console import Command, commands
from tests.docs.results_page import undocumented


def test_a_documented_file_is_known_and_another_is_not(tmp_path):
    for name in (
        "plan.json",
        "cells/ab12/result.json",
        "engines/b0-x/r3-engine.log",
        "aside/x/y.json",
        "new.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert undocumented(tmp_path) == ["new.txt"]


def test_what_a_page_shows_has_to_be_printed():
    command = Command(words="x", expected=("arm  ratio", "tp1/... 1.5"))
    assert command.unsaid("arm ratio\ntp1/eagle3   1.5\n") == []
    assert command.unsaid("arm ratio\ntp1/eagle3   1.5 or so\n") == ["tp1/... 1.5"]


@pytest.mark.parametrize("page", ["tutorial.md", "tutorial_vllm.md"])
def test_the_tutorials_type_commands_that_exist(page):
    found = [shlex.split(command.words) for command in commands(page)]
    assert len(found) >= 6
    assert {words[0] for words in found} == {"specload"}
    assert {words[1] for words in found} <= {command.name for command in COMMANDS}
