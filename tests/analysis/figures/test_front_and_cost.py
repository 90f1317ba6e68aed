"""The front of user speed against output per device, and what tokens cost."""

from dataclasses import replace

import pytest

from analysis.figures.cost import cost
from analysis.figures.pareto import pareto
from analysis.frame import cells_frame
from analysis.summary import summary_of
from tests.analysis.made import Arm, made_sweep

ARMS = [
    Arm(label="tp1/eagle3-k3", tokens=2.4, step={1: 1.1, 8: 1.4, 32: 3.0}),
    Arm(label="tp1/free-k3-a1", drafter="free", tokens=4.0, synthetic=True, requested=4.0),
]
LEVELS = (1, 8, 32)


@pytest.fixture(scope="module")
def sweep():
    made = made_sweep(ARMS, levels=LEVELS, blocks=3, noise=0.02)
    results = [
        replace(
            cell,
            metrics={
                **cell.metrics,
                "throughput/output_tok_s_per_device": cell.metrics["throughput/output_tok_s"],
                "throughput/total_tok_s_per_device": cell.metrics["throughput/total_tok_s"],
                "energy/joules_per_output_token": 100.0 / cell.metrics["throughput/output_tok_s"],
            },
        )
        for cell in made.results
    ]
    return replace(made, results=results, cells=cells_frame(results))


def test_the_front_is_drawn_through_what_nothing_beats(sweep) -> None:
    (figure,) = pareto(sweep, summary_of(sweep, threshold=0.02))
    names = [trace.name for trace in figure.plot.data]
    assert set(names[:2]) == {"eagle3-k3", "none"}
    assert not any("free" in name for name in names), "nobody can serve with forced acceptance"
    (front,) = [trace for trace in figure.plot.data if trace.name == "front"]
    assert list(front.x) == sorted(front.x, reverse=True)
    assert list(front.y) == sorted(front.y)
    (drafter,) = [trace for trace in figure.plot.data if trace.name == "eagle3-k3"]
    assert all(length > 0 for length in [*drafter.error_x.array, *drafter.error_y.arrayminus])
    assert figure.finding.startswith(f"The front has {len(front.x)} of 6 points, tp1/eagle3-k3 at C=1")
    assert "tp1/none at C=32" in figure.finding


def test_cost_follows_the_price_and_says_what_is_cheapest(sweep) -> None:
    priced = replace(sweep, plan={"gpu_hour_price": 3.6, "currency": "EUR"})
    (figure,) = cost(priced, summary_of(sweep, threshold=0.02))
    (base,) = [trace for trace in figure.plot.data if trace.name == "none"]
    cells = sweep.cells[sweep.cells["drafter"].eq("none") & sweep.cells["level"].eq(8)]
    speed = cells["throughput/output_tok_s"]
    assert base.y[1] == pytest.approx(1000.0 / speed.to_numpy().mean(), rel=0.02)
    assert base.error_y.array[1] > 0.0
    assert figure.plot.layout.yaxis.title.text == "EUR a million output tokens"
    (forced,) = [trace for trace in figure.plot.data if trace.name == "free-k3-a1"]
    assert forced.line.dash == "dot"
    assert figure.finding.startswith("Cheapest is tp1/none at C=32 with ")
    assert "Arms with forced acceptance are dotted" in figure.reading


def test_without_a_price_energy_is_drawn_and_without_both_it_says_how(sweep) -> None:
    summary = summary_of(sweep, threshold=0.02)
    (figure,) = cost(sweep, summary)
    assert figure.plot.layout.yaxis.title.text == "J an output token"
    dark = [
        replace(cell, metrics={**cell.metrics, "energy/joules_per_output_token": None})
        for cell in sweep.results
    ]
    (figure,) = cost(replace(sweep, results=dark, cells=cells_frame(dark)), summary)
    assert figure.plot is None
    assert "design.gpu_hour_price" in figure.missing
