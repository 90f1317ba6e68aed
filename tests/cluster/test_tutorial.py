"""docs/tutorial.md, typed as it stands: every command runs, and says what the page shows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.console import commands
from tests.docs.results_page import undocumented

pytestmark = pytest.mark.cluster
MISTAKES = 1
"""Commands of the page that are wrong on purpose."""


def test_the_tutorial_runs_as_printed(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    mistakes = 0
    found = commands("tutorial.md")
    assert len(found) >= 8
    for command in found:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command.words],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 2), f"{command.words}\n{done.stdout}"
        mistakes += done.returncode == 2
        assert command.unsaid(done.stdout) == [], f"{command.words}\n{done.stdout}"
    assert mistakes == MISTAKES
    (sweep,) = (tmp_path / "results").glob("tutorial-*")
    results = [json.loads(path.read_text()) for path in sweep.glob("cells/*/result.json")]
    assert len(results) == 24
    assert {result["outcome"] for result in results} <= {"measured", "invalid"}  # a busy machine is late
    assert undocumented(sweep) == []
