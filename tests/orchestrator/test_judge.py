"""What `specload judge` prints of others' results."""

from pathlib import Path

import pytest

from orchestrator.commands.judge import run

EXPORTS = Path(__file__).parents[1] / "analysis" / "others" / "exports"


def test_caveats_of_single_rows_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Both runs of this row have the same caveat."""
    arm = f"eagle3={EXPORTS / 'aiperf-0.13-eagle3-c2'}"
    assert run(["--baseline", str(EXPORTS / "aiperf-0.13-none-c2"), "--arm", arm]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("caveat, eagle3-k3 C=2: AIPerf's tokenizer and the server's usage") == 1
