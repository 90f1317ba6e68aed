"""The speculative cycle: shares by position with their intervals, and the tokens they add up to."""

import math

import pandas as pd
import pytest

from analysis.figures.cycle import cycle
from analysis.positions import pooled_length, position_shares, positions
from analysis.summary import summary_of
from tests.analysis.made import Arm, made_sweep

SHARES = (0.8, 0.6, 0.5)


def counted(label: str = "tp1/eagle3-k3", *, shift: float = 0.0, **changes) -> Arm:
    """An arm whose positions are counted; `shift` raises the first share with the load."""
    figures = {
        level: {
            f"spec/acceptance_pos_{place}": share + (shift * level if place == 1 else 0.0)
            for place, share in enumerate(SHARES, start=1)
        }
        | {"spec/drafts": 100.0 * level, "spec/mal": 2.9 + shift * level, "spec/tokens_per_step": 2.7}
        for level in (1, 4)
    }
    return Arm(label=label, tokens=2.7, step=1.2, figures=figures, **changes)


def drawn(*arms: Arm, **changes):
    sweep = made_sweep(list(arms), **({"levels": (1, 4), "blocks": 2} | changes))
    (figure,) = cycle(sweep, summary_of(sweep, threshold=0.02))
    return figure


def test_shares_of_several_blocks_are_those_of_their_drafts_together() -> None:
    cells = pd.DataFrame(
        {
            "block": [0, 1],
            "spec/drafts": [100.0, 300.0],
            "spec/acceptance_pos_1": [0.8, 0.6],
            "spec/acceptance_pos_2": [0.4, 0.3],
            "spec/mal": [2.2, 1.9],
        }
    )
    first, second = position_shares(cells, 2)
    half = 12.7062 * math.sqrt(2 * (15**2 + 15**2)) / 400
    assert first.unconditional == pytest.approx((0.65, max(0.0, 0.65 - half), 1.0))
    assert second.conditional[0] == pytest.approx(0.325 / 0.65)
    assert second.conditional[1:] == pytest.approx((0.5, 0.5), abs=1e-9), "both blocks accept one half"
    assert pooled_length(cells, "spec/mal")[0] == pytest.approx(1.975)
    assert position_shares(cells.drop(columns="spec/acceptance_pos_2"), 2) == ()
    alone = position_shares(cells[:1], 1)[0].unconditional
    assert alone[0] == 0.8
    assert math.isnan(alone[1])


def test_the_section_has_the_intervals() -> None:
    sweep = made_sweep([counted(shift=0.01)], levels=(1, 4), blocks=3)
    rows = positions(sweep).frame
    assert rows["unconditional"].tolist() == pytest.approx([(0.81 + 4 * 0.84) / 5, 0.6, 0.5])
    assert (rows["unconditional_lo"] <= rows["unconditional"]).all()


def test_the_bars_add_up_to_the_length() -> None:
    figure = drawn(counted())
    row = [trace for trace in figure.plot.data if trace.type == "bar" and trace.orientation == "h"]
    assert [trace.x[0] for trace in row] == pytest.approx([1.0, *SHARES])
    (length,) = [trace for trace in figure.plot.data if trace.name == "MAL"]
    assert length.x[0] == pytest.approx(sum(trace.x[0] for trace in row)) == pytest.approx(2.9)
    (tokens,) = [trace for trace in figure.plot.data if trace.name == "tokens/step"]
    assert tokens.x[0] == pytest.approx(2.7)
    (reached,) = [trace for trace in figure.plot.data if trace.name == "if reached"]
    assert list(reached.y) == pytest.approx([0.8, 0.75, 0.5 / 0.6])
    (alpha,) = [trace for trace in figure.plot.data if (trace.name or "").startswith("alpha")]
    assert alpha.y[1] == pytest.approx(alpha.y[0] ** 2)
    assert "emits 2.90 [2.90, 2.90] of 4 tokens" in figure.finding
    assert "first draft token is accepted 80 % [80, 80] of the time" in figure.finding
    assert figure.sections == ("positions",)


def test_each_load_has_a_thin_line_and_the_words_say_how_far_they_lie_apart() -> None:
    figure = drawn(counted(shift=0.02, synthetic=True))
    assert "(forced acceptance)" in figure.finding
    thin = [trace for trace in figure.plot.data if trace.name == "one load"]
    assert [trace.y[0] for trace in thin] == pytest.approx([0.82, 0.88])
    assert "by load the length is 2.92 to 2.98" in figure.finding


def test_the_longer_of_equal_drafters_is_told_of() -> None:
    longer = Arm(label="tp1/eagle3-k7", k=7, tokens=2.7, step=1.2)
    shorter = Arm(label="tp1/eagle3-k3", tokens=2.7, step=1.2)
    assert "eagle3-k7" in drawn(shorter, longer, blocks=1).finding


def test_without_counted_positions_the_lengths_tell() -> None:
    figure = drawn(Arm(label="tp1/eagle3-k1", k=1, tokens=1.8), Arm(label="tp1/eagle3-k2", k=2, tokens=2.4))
    assert "The engine counts no positions" in figure.reading
    bars = [trace for trace in figure.plot.data if trace.name == "all so far"]
    assert list(bars[0].y) == pytest.approx([0.8, 0.6])


def test_an_engine_that_counts_nothing_has_no_cycle() -> None:
    unknown = {level: {"spec/mal": None, "spec/tokens_per_step": None} for level in (1, 4)}
    figure = drawn(Arm(label="tp1/eagle3-k3", figures=unknown))
    assert figure.plot is None
    assert "counts neither drafts nor accepted tokens" in figure.missing
