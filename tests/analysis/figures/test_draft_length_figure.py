"""Draft length: the lines come from the fit, the slider moves the best K, and the load may decide it."""

from dataclasses import replace

import pytest

from analysis.figures.draft_length import draft_length
from analysis.frame import cells_frame
from analysis.ksweep import drafter_levels
from analysis.length_model import length_model
from analysis.summary import summarise, summary_of
from tests.analysis.figures.sliders import check_slider, stepped
from tests.analysis.made import Arm, made_sweep

GLM = (1.84, 2.50, 2.99, 3.33, 3.61, 3.78, 3.91, 4.06)
"""Published acceptance lengths of an MTP drafter at K = 1 to 8, which no one alpha fits."""
SPEC_BENCH = {
    1: {1: 1.29, 32: 1.23, 64: 1.19, 128: 1.14, 256: 1.08},
    3: {1: 1.81, 32: 1.52, 64: 1.36, 128: 1.18, 256: 1.03},
    5: {1: 2.01, 32: 1.53, 64: 1.29, 128: 1.07, 256: 0.90},
}
"""Published throughput speed-ups of EAGLE on an H100 (gsm8k): K -> batch -> ratio."""


def arms_of(
    *ks: int, drafter: str = "eagle3", alpha: float = 0.7, c: float = 0.1, s: float = 0.08, **changes
):
    return [
        Arm(
            label=f"tp1/{drafter}-k{k}",
            drafter=drafter,
            k=k,
            tokens=sum(alpha**i for i in range(k + 1)),
            step=1 + c + s * k,
            **changes,
        )
        for k in ks
    ]


def drawn(arms, **changes):
    sweep = made_sweep(arms, **changes)
    return draft_length(sweep, summary_of(sweep, threshold=0.02))


@pytest.fixture(scope="module")
def known():
    (figure,) = drawn(arms_of(1, 3, 7), levels=(4, 8), blocks=2, noise=0.0005)
    return figure


def ring(plot):
    return plot.data[-1].x[0]


def test_the_lines_are_those_of_the_fit(known) -> None:
    check_slider(known.plot)
    cost, quotient = known.plot.data[-3:-1]
    assert list(cost.y) == pytest.approx([1.1, 1.1 + 7 * 0.08], abs=0.01)
    assert list(quotient.x) == [1, 2, 3, 4, 5, 6, 7]
    assert quotient.y[2] == pytest.approx((1 + 0.7 + 0.49 + 0.343) / 1.34, abs=0.01)
    assert ring(known.plot) == 5, "sum(.7^i)/(1.1 + .08 K) is largest at 5"
    points = [trace for trace in known.plot.data if trace.name == "measured"]
    assert [tuple(trace.x) for trace in points] == [(1, 3, 7)] * 3
    assert all(trace.error_y.visible for trace in points)
    assert "one more draft token of tp1/eagle3 costs 8.0" in known.finding
    assert "Of K=1, 3 and 7 measured, K=" in known.finding
    assert "the fitted lines peak at K=5." in known.finding
    assert len(known.finding) < 225


def test_the_overhead_moves_the_best_k(known) -> None:
    slider = known.plot.layout.sliders[0]
    labels = [step.label for step in slider.steps]
    assert labels[slider.active].endswith("(fitted)")
    assert sum("fitted" in label for label in labels) == 1
    assert float(labels[0]) == 0.0
    fitted = float(labels[slider.active].split()[0])
    assert float(labels[-1]) == pytest.approx(3 * fitted, rel=1e-3)
    free, dear = stepped(known.plot, 0), stepped(known.plot, len(labels) - 1)
    assert ring(free) == 7, "with drafts for nothing more are better"
    assert ring(dear) == 3
    assert dear.layout.annotations[-1].text.startswith(f"<b>s = {labels[-1]}")
    assert dear.data[-3].y[1] == pytest.approx(1.1 + 7 * 0.24, abs=0.02)


def test_where_no_k_pays_the_ring_stands_at_none_and_forced_acceptance_is_said() -> None:
    (figure,) = drawn(arms_of(1, 3, 7, s=0.9, drafter="free", synthetic=True), levels=(4,))
    assert "tp1/free (forced acceptance)" in figure.finding
    assert ring(figure.plot) == 0
    assert "the fitted lines peak at K=0, no drafter" in figure.finding


def test_published_lengths_give_their_best_k_at_a_step_cost() -> None:
    arms = [
        Arm(label=f"tp1/mtp-k{k}", drafter="mtp", k=k, tokens=length, step=1.0 + 0.1 * k)
        for k, length in enumerate(GLM, start=1)
    ]
    (item,) = drafter_levels(made_sweep(arms))
    model = length_model(item)
    assert not model.formula, "no one alpha fits"
    assert model.lengths[3] == pytest.approx(2.99)
    assert {s: model.best(s) for s in (0.01, 0.05, 0.2, 0.9)} == {0.01: 8, 0.05: 6, 0.2: 3, 0.9: 0}
    assert model.best() == 5


def test_steps_without_a_draft_lower_the_quotient() -> None:
    arms = [
        Arm(label=f"tp1/a-k{k}", k=k, tokens=0.9 * mal, mal=mal, step=1 + 0.1 * k)
        for k, mal in ((1, 1.7), (2, 2.19))
    ]
    (item,) = drafter_levels(made_sweep(arms))
    model = length_model(item)
    assert model.share == pytest.approx(0.9)
    assert model.quotient(1) == pytest.approx(0.9 * 1.7 / 1.1)


def test_the_load_decides_the_best_k_as_published() -> None:
    arms = [
        Arm(
            label=f"tp1/eagle-k{k}",
            drafter="eagle",
            k=k,
            ratios={level: {"throughput/total_tok_s": ratio} for level, ratio in ratios.items()},
        )
        for k, ratios in SPEC_BENCH.items()
    ]
    figures = drawn(arms, levels=list(SPEC_BENCH[1]))
    assert [figure.name for figure in figures] == ["draft-length-1", "draft-length-1-loads"]
    assert "K=5 at C=1 to C=32, K=3 at C=64 to C=128, K=1 at C=256" in figures[1].finding
    assert [trace.name for trace in figures[1].plot.data] == ["C=1", "C=32", "C=64", "C=128", "C=256"]


def test_a_load_that_a_search_placed_for_some_lengths_only_says_nothing_of_the_best() -> None:
    made = made_sweep(arms_of(1, 3, 7), levels=(4, 8, 16))
    some = [cell for cell in made.results if cell.level != 8 or cell.k in (0, 1, 3)]
    sweep = replace(made, results=some, cells=cells_frame(some))
    summary = summarise(some, threshold=0.02)
    assert draft_length(sweep, summary)[1:] == (), "K=3 is best of those at C=8, K=7 at the other two"


def test_one_draft_length_names_the_command_that_measures_others() -> None:
    plan = {"overrides": ["experiment=quickstart", "drafter=eagle3", "drafter.k=3", "design.blocks=2"]}
    (figure,) = drawn(arms_of(3), plan=plan)
    assert figure.plot is None
    assert "K=1 or 5 or 7" in figure.missing
    assert "specload sweep -m +experiment=quickstart drafter=eagle3 design.blocks=2 drafter.k=1,3,5,7" in (
        figure.missing
    )


def test_drafters_that_are_not_drawn_are_named() -> None:
    arms = [arm for name in ("a", "b", "c", "d") for arm in arms_of(1, 3, drafter=name)]
    figures = drawn(arms)
    assert [figure.name for figure in figures] == ["draft-length-1", "draft-length-2", "draft-length-3"]
    assert "Not drawn: tp1/" in figures[0].reading
    assert [bool(figure.sections) for figure in figures] == [True, False, False]


def test_without_step_times_there_are_points_and_no_slider() -> None:
    unknown = {4: {"step/mean_ms": None}}
    (figure,) = drawn(arms_of(1, 3, figures=unknown))
    assert not figure.plot.layout.sliders
    assert "Of K=1 and 3 measured, K=3 gives users most speed" in figure.finding
