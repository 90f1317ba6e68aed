import math
from itertools import pairwise
from statistics import mean, pstdev

import pytest

from engines.acceptance import Acceptance
from engines.emulator.draws import accepted, combine, log_normal, normal, uniform
from engines.emulator.noise import Noise, NoiseLevels


@pytest.mark.parametrize(("alpha", "k", "known"), [(0.74, 3, 2.6928), (0.74, 7, 3.5003), (0.6912, 7, 3.07)])
def test_mean_acceptance_length_is_the_formula(alpha: float, k: int, known: float):
    assert Acceptance(alpha=alpha).mean_length(k) == pytest.approx(known, abs=0.001)
    lengths, position = [], 0
    for _ in range(40_000):
        count = accepted(7, position, [alpha] * k)
        lengths.append(count + 1)
        position += count + 1
    # Four standard errors.
    assert mean(lengths) == pytest.approx(known, abs=4 * pstdev(lengths) / math.sqrt(len(lengths)))


def test_every_position_has_the_same_conditional_chance():
    counts = [accepted(3, 8 * step, [0.6] * 4) for step in range(20_000)]
    reached = [sum(count >= position for count in counts) for position in range(5)]
    for before, after in pairwise(reached):
        assert after / before == pytest.approx(0.6, abs=4 * math.sqrt(0.24 / before))


@pytest.mark.parametrize(("alpha", "expected"), [(0.0, 0), (1.0, 5)])
def test_certain_acceptance(alpha: float, expected: int):
    assert {accepted(1, position, [alpha] * 5) for position in range(200)} == {expected}


def test_draws_depend_on_key_and_index_only():
    assert uniform(5, 9) == uniform(5, 9)
    assert uniform(5, 9) != uniform(5, 10)
    assert uniform(5, 9) != uniform(6, 9)
    assert combine(1, 2) != combine(2, 1)


def test_uniform_and_normal_have_their_moments():
    draws = [uniform(11, index) for index in range(20_000)]
    assert mean(draws) == pytest.approx(0.5, abs=0.01)
    assert pstdev(draws) == pytest.approx(math.sqrt(1 / 12), rel=0.02)
    bell = [normal(11, index) for index in range(20_000)]
    assert mean(bell) == pytest.approx(0.0, abs=0.03)
    assert pstdev(bell) == pytest.approx(1.0, rel=0.02)
    assert mean(log_normal(3, index, 0.1) for index in range(20_000)) == pytest.approx(1.0, abs=0.003)


def test_noise_can_be_switched_off():
    quiet = Noise(NoiseLevels(start=0, drift=0, step=0), start=1, rank=0)
    assert {quiet.factor(step, step * 0.7) for step in range(50)} == {1.0}


def test_start_effect_differs_between_starts_and_repeats():
    levels = NoiseLevels(start=0.05, drift=0, step=0)
    factors = [Noise(levels, start=start, rank=0).factor(0, 0.0) for start in range(400)]
    assert pstdev(map(math.log, factors)) == pytest.approx(0.05, rel=0.15)
    assert factors[7] == Noise(levels, start=7, rank=0).factor(99, 123.0)


def test_drift_is_slow_and_step_noise_is_not():
    drift = Noise(NoiseLevels(start=0, drift=0.02, step=0), start=1, rank=0)
    changes = [drift.factor(0, t + 0.1) / drift.factor(0, t) for t in range(200)]
    assert max(abs(change - 1) for change in changes) < 0.001
    assert pstdev(math.log(drift.factor(0, t)) for t in range(3000)) == pytest.approx(0.02, rel=0.1)
    step = Noise(NoiseLevels(start=0, drift=0, step=0.02), start=1, rank=0)
    assert pstdev(math.log(step.factor(index, 0.0)) for index in range(3000)) == pytest.approx(0.02, rel=0.1)


def test_the_default_has_all_three_sources():
    levels = NoiseLevels()
    assert min(levels.start, levels.drift, levels.step) > 0


def test_ranks_of_one_start_share_the_start_effect_but_not_the_steps():
    levels = NoiseLevels(start=0.05, drift=0, step=0)
    assert Noise(levels, start=3, rank=0).factor(1, 0) == Noise(levels, start=3, rank=1).factor(1, 0)
    steps = NoiseLevels(start=0, drift=0, step=0.05)
    assert Noise(steps, start=3, rank=0).factor(1, 0) != Noise(steps, start=3, rank=1).factor(1, 0)
