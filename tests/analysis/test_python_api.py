"""The names a notebook imports, and the example of docs/python.md."""

import ast
import re
from pathlib import Path

import pandas as pd
import plotly.graph_objects
import pytest

import analysis
from analysis.factorial import COMBINATION_COLUMNS, EFFECT_COLUMNS
from analysis.frame import CELL_COLUMNS
from analysis.objectives import OBJECTIVES
from analysis.summary import summarise
from analysis.tidy import CROSSOVER_COLUMNS, VERDICT_COLUMNS
from tests.analysis.folders import write_folder

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def results(make_sweep, true_arm):
    ratios = {"tp1": {1: 1.5, 4: 1.2, 16: 0.8}, "tp2": {1: 1.2, 4: 0.9, 16: 0.7}}
    arms = [true_arm(label=f"{layout}/ngram-k3", layout=layout, ratios=own) for layout, own in ratios.items()]
    return make_sweep(arms, noise=0.01)


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("results") / "my-sweep", results)


def test_every_public_name_is_there_and_no_module_takes_its_place():
    assert sorted(analysis.__all__) == sorted(analysis._HOMES)
    modules = {path.stem for path in (ROOT / "analysis").iterdir()}
    assert not modules & set(analysis.__all__)
    for name in analysis.__all__:
        assert getattr(analysis, name) is not None
    assert set(analysis.__all__) <= set(dir(analysis))
    with pytest.raises(AttributeError, match="no attribute 'verdict_frame'"):
        analysis.verdict_frame  # noqa: B018 - the look-up is what is tested


def test_importing_the_package_imports_nothing_heavy():
    tree = ast.parse((ROOT / "analysis" / "__init__.py").read_text(encoding="utf-8"))
    names = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names} | {
        node.module for node in tree.body if isinstance(node, ast.ImportFrom)
    }
    assert names == {"importlib", "typing"}


def test_the_guide_runs(folder):
    examples = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert len(examples) == 3
    space = {}
    for example in examples:
        exec(example.replace("results/my-sweep", str(folder)), space)
    assert len(space["requests"]) == 2 * len(space["cells"])
    assert set(space["table"]["treatment"]) == {"none", "ngram-k3"}
    assert isinstance(space["figure"].plot, plotly.graph_objects.Figure)
    assert list(space["figures"]) == [figure.name for figure in space["figures"].values()]
    named = set(re.findall(r"`(?:sweep\.)?(\w+)\(", GUIDE)) | set(
        re.findall(r"^\| `(\w+)", GUIDE, re.MULTILINE)
    )
    unknown = {name for name in named if not hasattr(analysis, name) and not hasattr(analysis.Sweep, name)}
    assert not unknown - {"sweep", "sum"}


def test_verdicts_and_crossovers_are_those_of_the_summary(results):
    cells = analysis.cells_frame(results)
    summary = summarise(results, threshold=0.02)
    found = analysis.verdicts(cells)
    assert found["verdict"].tolist() == [row.verdict for row in summary.rows]
    assert found["total_lo"].tolist() == pytest.approx([row.total.lo for row in summary.rows])
    crossings = analysis.crossovers(cells)
    assert crossings["text"].tolist() == [row.text for row in summary.crossovers]
    total = crossings[(crossings["label"] == "tp1/ngram-k3") & (crossings["objective"] == "total")].iloc[0]
    assert total["lower"] == 4.0 < total["crossover_lo"] < total["crossover"] < total["crossover_hi"] < 16.0
    with pytest.raises(ValueError, match="objective 'speed' is unknown"):
        analysis.verdicts(cells, objective="speed")


def test_every_column_is_explained_and_nothing_is_changed_in_place(results):
    cells = analysis.cells_frame(results)
    before = cells.copy(deep=True)
    factors = ["layout", "treatment"]
    frames = {
        "verdicts": (analysis.verdicts(cells), VERDICT_COLUMNS),
        "crossovers": (analysis.crossovers(cells), CROSSOVER_COLUMNS),
        "effects": (analysis.effects(cells, factors), EFFECT_COLUMNS),
        "combinations": (
            analysis.combinations(cells, factors),
            COMBINATION_COLUMNS | dict.fromkeys(factors, ""),
        ),
    }
    for name, (frame, columns) in frames.items():
        assert len(frame), name
        told = {re.sub(r"_(lo|hi)$", "", column) for column in frame.columns}
        assert told == set(columns), name
    assert list(cells.columns[: len(CELL_COLUMNS)]) == list(CELL_COLUMNS)
    assert set(OBJECTIVES) <= set(VERDICT_COLUMNS)
    pd.testing.assert_frame_equal(cells, before)
