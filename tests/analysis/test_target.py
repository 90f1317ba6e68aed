"""Working back from an end-to-end target, by the published figures and on sweeps made by hand."""

import json
import math
from pathlib import Path

import pytest

from analysis.amdahl import amdahl, need
from analysis.context import context
from analysis.formulas import speed_up_cap
from analysis.target import (
    ABOVE_ALL,
    CAPPED,
    NEEDS,
    ON_LINE,
    PERHAPS,
    PREDICTED,
    REACHED,
    bare_target,
    target,
)
from orchestrator.cli import main
from tests.analysis.made import Arm, made_sweep

SHARES = (0.70, 0.83, 0.93)


def drafter(**changes: float) -> list[Arm]:
    """Acceptance alpha .8, a step of 1 + .1 K."""
    return [
        Arm(
            label=f"tp1/mtp-k{k}",
            drafter="mtp",
            k=k,
            tokens=sum(0.8**i for i in range(k + 1)),
            step=1 + k / 10,
            **changes,
        )
        for k in (1, 3, 5)
    ]


@pytest.mark.parametrize(
    ("g", "x"),
    [(1.2, (1.312, 1.251, 1.218)), (1.5, (1.909, 1.671, 1.559)), (2.0, (3.500, 2.515, 2.163))],
)
def test_the_published_table(g: float, x: tuple[float, ...]) -> None:
    rows = bare_target(g, SHARES, {}).frame
    assert rows["x"].tolist() == pytest.approx(x, abs=5e-4)
    own = [amdahl(made_sweep(drafter(), share=share)).frame.iloc[0] for share in SHARES]
    assert [row[f"x_{g:g}"] for row in own] == pytest.approx(x, abs=5e-4)
    assert own[1]["cap"] == pytest.approx(5.88, abs=5e-3)


def test_what_no_decode_can_reach() -> None:
    found = need(5.9, 0.83)
    assert (found.decode, found.cap) == (None, pytest.approx(5.88, abs=5e-3))
    assert need(5.8, 0.83).decode is not None
    assert bare_target(5.9, [0.83], {3: 1.2}).frame["answer"].tolist() == [CAPPED]
    assert speed_up_cap(0.83, 2.0) == pytest.approx(1 / 0.34)
    assert need(1.5, 0.83, h=4.0).decode is None, "(1 - f) h alone is .68 of the latency, over 1/1.5"


def test_length_and_acceptance_follow_from_the_step_cost() -> None:
    """x = 1.671 at a step of 2.177 plain ones: 3.64 tokens a step; of K=7 that is alpha .754, of K=2 none."""
    found = need(1.5, 0.83, step=2.177, k=7)
    assert found.length == pytest.approx(1.671 * 2.177, abs=2e-3)
    assert found.alpha == pytest.approx(0.7537, abs=5e-4)
    assert need(1.5, 0.83, step=2.177, k=2).alpha is None
    assert need(1.05, 1.0, step=0.5, k=3).length == 1.0, "a step yields one token at least"


def test_a_sweep_says_at_which_length_a_target_is_reached() -> None:
    section = target(made_sweep(drafter(), share=0.83, blocks=2, noise=1e-4), 1.5)
    frame = section.frame.set_index("k")
    assert frame.index.tolist() == [1, 2, 3, 4, 5]
    assert frame["source"].tolist() == ["measured", ON_LINE, "measured", ON_LINE, "measured"]
    assert frame["x"].tolist() == pytest.approx([1.671] * 5, abs=2e-3)
    assert frame["length_needed"].tolist() == pytest.approx(
        [1.671 * (1 + k / 10) for k in frame.index], rel=2e-3
    )
    assert frame["answer"].tolist() == [NEEDS, PREDICTED, REACHED, PREDICTED, REACHED]
    assert "reached at K=3, K=5; predicted at K=2, K=4" in section.notes[0]


def test_other_time_that_grows_raises_what_is_needed() -> None:
    grown = target(made_sweep(drafter(other=1.5), share=0.83), 1.5).frame
    assert grown["h"].tolist() == pytest.approx([1.5] * 5)
    assert grown["x_plain"].tolist() == pytest.approx([1.671] * 5, abs=5e-4)
    assert grown["x"].tolist() == pytest.approx([0.83 / (1 / 1.5 - 0.17 * 1.5)] * 5)


def test_out_of_reach_and_nearest() -> None:
    section = target(made_sweep(drafter(), share=0.83), 2.5)
    assert section.frame["answer"].tolist()[:2] == [ABOVE_ALL, ABOVE_ALL]
    assert "is not reached; nearest at K=5" in section.notes[0]
    (bare,) = [note for note in target(made_sweep(drafter(), share=0.2), 3.0).notes if "out of reach" in note]
    assert "at every K" in bare
    noisy = target(made_sweep(drafter(), share=0.83, blocks=2, noise=0.2, seed=3), 1.6).frame
    assert PERHAPS in set(noisy["answer"])


def test_the_section_has_an_interval_over_the_blocks() -> None:
    row = amdahl(made_sweep(drafter(), share=0.83, blocks=3, noise=0.05)).frame.iloc[0]
    assert row["decode_share_lo"] < row["decode_share"] < row["decode_share_hi"] < 1.0
    assert row["segments"] == 3
    assert row["cap"] == pytest.approx(1 / (1 - row["decode_share"]))


def test_the_command_without_a_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "target",
        "--speedup",
        "1.5",
        "--decode-share",
        ".7,.83",
        "--token-cost",
        ".168",
        "--k",
        "7",
        "--json",
    ]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["step_ratio"] for row in rows] == pytest.approx([2.176, 2.176])
    assert [row["length_needed"] for row in rows] == pytest.approx([4.154, 3.636], abs=5e-4)
    assert main(["target", "--speedup", "6", "--decode-share", ".83"]) == 0
    assert "out of reach" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--speedup", "1.5", "--decode-share", "1.2"], "share of the latency: 0 to 1"),
        (["--speedup", "0", "--decode-share", ".8"], "more than 0"),
        (["--speedup", "1.5", "results/none-such"], "is not there; give the folder of a sweep"),
    ],
)
def test_what_the_user_can_fix(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["target", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--speedup", "1.5"],
        ["--speedup", "1.5", "--decode-share", "many"],
        ["--speedup", "1.5", "--decode-share", ".8", "--k", "3"],
        ["--speedup", "1.5", "SWEEP", "--decode-share", ".8"],
    ],
)
def test_words_that_do_not_go_together(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(SystemExit) as stop:
        main(["target", *(str(tmp_path) if word == "SWEEP" else word for word in words)])
    assert stop.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_decode_against_context() -> None:
    """As published of another engine: acceptance flat, decode speed 81.7 -> 5.8 tok/s."""

    def sliced(mal: float, near: float, far: float) -> dict[float, dict[str, float | None]]:
        return {
            4: {
                "context/speed_tok_s_0_1k": near, "context/tokens_per_chunk_0_1k": mal,
                "context/mal_0_1k": mal,
                "context/speed_tok_s_64k_up": far, "context/tokens_per_chunk_64k_up": mal,
                "context/mal_64k_up": mal * 0.98,
            }
        }  # fmt: skip

    section = context(made_sweep([Arm(label="tp1/mtp-k3", tokens=2.4, figures=sliced(2.4, 81.7, 5.8))]))
    near, far = (section.frame.iloc[place] for place in (0, 1))
    assert (near["speed_tok_s"], far["speed_tok_s"]) == pytest.approx((81.7, 5.8))
    assert far["step_ms"] == pytest.approx(2.4 / 5.8 * 1000)
    assert far["speed_change"] == pytest.approx(5.8 / 81.7)
    assert far["step_change"] == pytest.approx(81.7 / 5.8)
    assert math.isnan(near["speed_ratio"]), "the baseline has no slices here"
    assert any("the acceptance length stays" in note for note in section.notes)
    assert "workload" in context(made_sweep(drafter())).missing
