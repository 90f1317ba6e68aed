"""Imports between the rooms go one way, heavy packages stay where they belong."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("conf", "engines", "jobs", "analysis", "orchestrator")
ALLOWED = {
    "conf": set(),
    "engines": {"engines"},
    "jobs": {"engines", "jobs"},
    "analysis": {"analysis", "jobs", "engines"},  # of the latter two what ANALYSIS_READS has, and no more
    "orchestrator": set(ROOMS),
}
ANALYSIS_READS = {"jobs.result", "jobs.metric_names", "jobs.nouns", "engines.nearest"}
ENGINE_ENVIRONMENT = ROOT / "engines" / "vllm_env"
ENGINE_PACKAGES = {"torch", "vllm", "transformers"}
HEAVY = {
    "ray",
    "mlflow",
    "pandas",
    "numpy",
    "pyarrow",
    "hydra",
    "omegaconf",
    "scipy",
    "plotly",
    "torch",
    "vllm",
}
SLOW = {"ray", "mlflow", "pandas", "scipy", "plotly", "torch", "vllm"}
"""What takes a second or more to load."""
LOAD_PROCESS = "jobs.replay.__main__"
EMULATOR_PROCESS = "engines.emulator.__main__"
GUARD_PROCESS = "engines.guard"


def modules(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)


def imported(path):
    """Every module an import statement names, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def first(name):
    return name.partition(".")[0]


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_way(room):
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        if ENGINE_ENVIRONMENT not in path.parents
        for name in imported(path)
        if first(name) in ROOMS and first(name) not in ALLOWED[room]
    }
    assert not wrong


def test_analysis_reads_only_the_result_schema():
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("analysis")
        for name in imported(path)
        if first(name) in ("jobs", "engines")
        and not any(name == known or name.startswith(f"{known}.") for known in ANALYSIS_READS)
    }
    assert not wrong


def test_only_the_engine_environment_imports_torch_or_vllm():
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for room in ROOMS
        for path in modules(room)
        if ENGINE_ENVIRONMENT not in path.parents
        for name in imported(path)
        if first(name) in ENGINE_PACKAGES
    }
    assert not wrong


def test_the_engine_environment_imports_nothing_of_ours():
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in ENGINE_ENVIRONMENT.rglob("*.py")
        for name in imported(path)
        if first(name) in ROOMS
    }
    assert not wrong


def test_no_private_modules_of_other_libraries():
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for room in ROOMS
        for path in modules(room)
        if ENGINE_ENVIRONMENT not in path.parents
        for name in imported(path)
        if first(name) not in ROOMS
        and any(part.startswith("_") and part != "__future__" for part in name.split("."))
    }
    assert not wrong


@pytest.mark.parametrize("module", [LOAD_PROCESS, EMULATOR_PROCESS, GUARD_PROCESS])
def test_processes_that_measure_or_serve_import_nothing_heavy(module):
    """Seen in the process itself: an import of an import counts too."""
    code = f"import sys, importlib; importlib.import_module({module!r}); print(*sys.modules)"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & {first(name) for name in done.stdout.split()}


def test_no_command_loads_what_takes_seconds_before_it_knows_that_it_needs_it():
    """A typo, `--help` and `specload status` wait for no statistics; commands import late what they need."""
    names = [f"orchestrator.commands.{path.stem}" for path in modules("orchestrator/commands")]
    code = (
        f"import sys, importlib; [importlib.import_module(name) for name in {names!r}]; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "orchestrator.commands.sweep" in loaded
    assert not SLOW & {first(name) for name in loaded}


def test_the_check_sees_what_it_should(tmp_path):
    source = tmp_path / "bad.py"
    source.write_text("import torch.nn\ndef f():\n    from orchestrator.plan import Plan\n")
    assert list(imported(source)) == ["torch.nn", "orchestrator.plan", "orchestrator.plan.Plan"]


def test_nothing_that_a_sweep_is_planned_with_imports_ray():
    """Ray reads how it authenticates when it is imported: `use_rays_authentication` has to come before."""
    todo = [f"orchestrator.commands.{command}" for command in ("plan", "sweep", "submit", "profile")]
    seen = set()
    while todo:
        name = todo.pop()
        path = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        if name in seen or not path.is_file():
            continue
        seen.add(name)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:  # what stands in functions comes late
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [node.module] if isinstance(node, ast.ImportFrom) else [part.name for part in node.names]
                )
                assert "ray" not in {first(found) for found in names}, name
                todo += names
    assert "orchestrator.planning" in seen
