import math

import pytest

from analysis.fit import Contrast, LevelFit
from analysis.verdict import (
    LOSES,
    NO_DIFFERENCE,
    UNDECIDED,
    WINS,
    blocks_needed,
    decide,
    sign_flip_p,
    threshold_of,
)


def contrast(ratio: float, half: float, *, pairs: int = 3) -> Contrast:
    return Contrast(
        estimate=math.log(ratio),
        factor=0.5,
        pairs=pairs,
        family=1,
        correlation=0.0,
        error=half / 2.0,
        critical=2.0,
    )


FIT = LevelFit(df=5, variance=1e-4)


@pytest.mark.parametrize(
    ("ratio", "half", "spread", "word"),
    [
        (1.10, 0.05, None, WINS),
        (1.10, 0.05, 0.03, WINS),
        (1.10, 0.05, 0.06, UNDECIDED),  # the A/A spread raises the threshold
        (1.10, 0.09, None, UNDECIDED),
        (0.90, 0.05, None, LOSES),
        (0.90, 0.09, None, UNDECIDED),
        (1.00, 0.015, None, NO_DIFFERENCE),
        (1.00, 0.025, None, UNDECIDED),  # absence of evidence is no equivalence
        (1.00, 0.025, 0.03, NO_DIFFERENCE),
        (1.015, 0.01, None, UNDECIDED),
    ],
)
def test_the_rule(ratio: float, half: float, spread: float | None, word: str) -> None:
    assert decide(contrast(ratio, half), FIT, practical=0.02, spread=spread).word == word


def test_limits_are_one_plus_t_and_its_inverse() -> None:
    limit = math.log(1.02)
    for ratio, word in ((math.exp(limit + 0.0101), WINS), (math.exp(-limit - 0.0101), LOSES)):
        assert decide(contrast(ratio, 0.01), FIT, practical=0.02, spread=None).word == word
    for ratio in (math.exp(limit + 0.0099), math.exp(-limit - 0.0099)):
        assert decide(contrast(ratio, 0.01), FIT, practical=0.02, spread=None).word == UNDECIDED


def test_threshold_is_the_larger_one_and_the_reason_says_which() -> None:
    assert threshold_of(0.02, None) == 0.02
    assert threshold_of(0.02, 0.01) == 0.02
    assert threshold_of(0.02, 0.05) == pytest.approx(math.exp(0.05) - 1)
    assert (
        "2.0% (practical threshold)" in decide(contrast(1.2, 0.01), FIT, practical=0.02, spread=0.01).reason
    )
    assert "5.1% (A/A spread" in decide(contrast(1.2, 0.01), FIT, practical=0.02, spread=0.05).reason


def test_undecided_tells_the_blocks_it_would_take() -> None:
    close = contrast(1.10, 0.09)
    verdict = decide(close, FIT, practical=0.02, spread=None)
    assert verdict.more_blocks is not None
    assert f"about {verdict.more_blocks} more block" in verdict.reason
    assert verdict.more_blocks == blocks_needed(close, FIT, math.log(1.02))
    # by hand: z-like error .045 must shrink until t(df) * error fits into ln 1.10 - ln 1.02
    room = math.log(1.10 / 1.02)
    assert 0.045 * math.sqrt(3 / (3 + verdict.more_blocks)) * 1.96 < room
    on_the_limit = contrast(1.02, 0.05)
    hopeless = decide(on_the_limit, FIT, practical=0.02, spread=None)
    assert hopeless.more_blocks is None
    assert "more than 200 further blocks" in hopeless.reason


def test_without_a_replicate_nothing_is_decided() -> None:
    alone = Contrast(
        estimate=math.log(2.0), factor=1.5, pairs=1, family=1, correlation=0.0, error=None, critical=None
    )
    verdict = decide(alone, LevelFit(), practical=0.02, spread=0.0)
    assert verdict.word == UNDECIDED
    assert verdict.reason.startswith("no interval: no arm of this level was measured in two blocks")
    assert blocks_needed(alone, LevelFit(), 0.02) is None


@pytest.mark.parametrize(
    ("values", "p"),
    [
        ([0.1], 1.0),
        ([0.1, 0.2], 0.5),
        ([0.1] * 5, 0.0625),
        ([-0.1] * 5, 0.0625),
        ([0.1, -0.1], 1.0),
        ([0.0, 0.0], 1.0),
    ],
)
def test_sign_flip(values: list[float], p: float) -> None:
    assert sign_flip_p(values) == pytest.approx(p)


def test_sign_flip_of_many_values_is_seeded_and_small() -> None:
    values = [0.1 + 0.001 * index for index in range(20)]
    assert sign_flip_p(values) == sign_flip_p(values)
    assert sign_flip_p(values) == pytest.approx(1 / 4096)
    assert sign_flip_p([math.nan]) is None
    assert sign_flip_p([]) is None
