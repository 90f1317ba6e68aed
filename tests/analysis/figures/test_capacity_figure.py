"""What fits in the KV cache, as bars and as tables."""

import pytest

from analysis.capacity_sections import capacity as capacity_section
from analysis.capacity_sections import memory as memory_section
from analysis.figures.capacity import MOST_BARS, capacity
from analysis.frame import Sweep
from analysis.summary import summary_of
from tests.analysis.made import Arm, made_sweep


def known(tokens: float, waiting: float = 0.0) -> dict[str, float | None]:
    return {
        "kv/capacity_tokens": tokens,
        "kv/ranks": 1.0,
        "kv/conversations_mean": tokens / 100.0,
        "kv/context_mean": 100.0,
        "engine/waiting_share": waiting,
    }


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    """A baseline with 1,000 tokens, an arm with 800, and its baseline with matched KV."""
    arm = Arm(label="tp1/eagle3-k3", tokens=1.5, figures={4: known(800.0), 16: known(800.0, waiting=0.9)})
    matched = Arm(
        label="tp1/none-kv-matched-eagle3-k3",
        k=0,
        drafter="none",
        step=1.1,
        counterfactual="kv_matched",
        kv_of=arm.digest,
        figures={level: known(800.0) for level in (4, 16)},
    )
    made = made_sweep([arm, matched], levels=(4, 16), blocks=2, noise=0.01)
    for cell in made.results:
        if cell.k == 0 and not cell.counterfactual:
            cell.metrics.update(known(1000.0))
    return made


def test_the_bars_are_what_fits_and_what_the_drafter_took(sweep: Sweep) -> None:
    (figure,) = capacity(sweep, summary_of(sweep, threshold=0.02))
    assert figure.plot is not None
    fits, took, words = figure.plot.data
    assert list(fits.y) == ["none", "eagle3-k3"]
    assert list(fits.x) == [1000.0, 800.0]
    assert list(took.x) == [0.0, 200.0]
    assert "-20 %" in words.text[1]
    assert "waits C=16" in words.text[1]
    assert figure.finding == (
        "tp1/eagle3-k3 has 800 of the baseline's 1,000 KV tokens: its drafter took 20 %. Requests wait "
        "between C=4 and C=16."
    )


def test_the_tables_say_the_same(sweep: Sweep) -> None:
    rows = capacity_section(sweep).frame.set_index("arm")
    assert rows.loc["tp1/eagle3-k3", "tokens"] == 800
    assert rows.loc["tp1/eagle3-k3", "taken_share"] == 0.2
    assert rows.loc["tp1/eagle3-k3", "waits_from"] == 16.0
    costs = memory_section(sweep).frame
    assert costs["arm"].unique().tolist() == ["tp1/eagle3-k3"]
    assert (costs["memory"] * costs["rest"]).tolist() == pytest.approx(costs["whole"].tolist())
    assert (costs["whole_lo"] < costs["whole"]).all()


def test_an_engine_that_does_not_tell_and_a_crowd_of_arms() -> None:
    silent = made_sweep([Arm(label="tp1/ngram-k3")])
    (absent,) = capacity(silent, summary_of(silent, threshold=0.02))
    assert absent.plot is None
    assert "capacity" in absent.missing
    assert capacity_section(silent).frame.empty
    assert "drafter.kv=matched" in memory_section(silent).missing
    many = [Arm(label=f"tp1/ngram-k{k}", k=k, figures={4: known(900.0)}) for k in range(1, MOST_BARS + 4)]
    crowded = made_sweep(many)
    (figure,) = capacity(crowded, summary_of(crowded, threshold=0.02))
    assert figure.plot is not None
    assert len(figure.plot.data[0].y) == MOST_BARS
    assert "less relevant arms are left out" in figure.reading
