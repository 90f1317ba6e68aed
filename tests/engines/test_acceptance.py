"""Synthetic acceptance: the forms, their rates, and what each engine makes of them."""

import json
import math
from dataclasses import asdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.acceptance import (
    GEOMETRIC,
    MINIMUM_VARIANCE,
    SHAPES,
    Acceptance,
    Source,
    alpha_for,
    conditional_rates,
)
from engines.acceptance_translation import sglang_acceptance, trtllm_acceptance, vllm_acceptance
from engines.errors import EngineConfigError
from engines.spec import Drafter, EngineConfig, Model

K = st.integers(1, 12)
QUICK = settings(max_examples=60, deadline=None)


@st.composite
def acceptances(draw: st.DrawFn) -> tuple[Acceptance, int]:
    """An acceptance of any form and a draft length at which it can be had."""
    k = draw(K)
    form = draw(st.sampled_from(["alpha", "positions", *SHAPES]))
    if form == "alpha":
        return Acceptance(alpha=draw(st.floats(0, 1))), k
    if form == "positions":
        rates = sorted(draw(st.lists(st.floats(0, 1), min_size=k, max_size=k + 3)), reverse=True)
        return Acceptance(positions=tuple(rates)), k
    return Acceptance(length=draw(st.floats(1, k + 1)), shape=form), k


@QUICK
@given(acceptances())
def test_rates_are_probabilities_that_never_rise_and_add_up(case: tuple[Acceptance, int]) -> None:
    acceptance, k = case
    rates = acceptance.rates(k)
    assert len(rates) == k
    assert all(0.0 <= rate <= 1.0 for rate in rates)
    assert all(after <= before for before, after in pairwise(rates))
    assert acceptance.mean_length(k) == pytest.approx(1 + sum(rates))
    if acceptance.length is not None:
        assert acceptance.mean_length(k) == pytest.approx(acceptance.length, abs=1e-9)
    conditional = conditional_rates(rates)
    assert all(0.0 <= rate <= 1.0 for rate in conditional)
    assert list(_products(conditional)) == pytest.approx(list(rates), abs=1e-12)


def _products(rates: tuple[float, ...]) -> list[float]:
    found, product = [], 1.0
    for rate in rates:
        product *= rate
        found.append(product)
    return found


@QUICK
@given(acceptances())
def test_it_survives_json_and_is_canonical_at_its_k(case: tuple[Acceptance, int]) -> None:
    acceptance, k = case
    back = Acceptance.from_dict(json.loads(json.dumps(asdict(acceptance))))
    assert back == acceptance
    assert back.at(k).rates(k) == acceptance.rates(k)
    assert acceptance.at(k).at(k) == acceptance.at(k)


@QUICK
@given(K, st.floats(0, 1))
def test_alpha_of_a_length_is_the_inverse(k: int, alpha: float) -> None:
    length = Acceptance(alpha=alpha).mean_length(k)
    found = alpha_for(length, k)
    assert Acceptance(alpha=found).mean_length(k) == pytest.approx(length, abs=1e-12)


@pytest.mark.parametrize(
    ("alpha", "k", "length"), [(0.74, 3, 2.6928), (0.74, 7, 3.5003), (1.0, 7, 8.0), (0.0, 5, 1.0)]
)
def test_known_mean_lengths(alpha: float, k: int, length: float) -> None:
    assert Acceptance(alpha=alpha).mean_length(k) == pytest.approx(length, abs=5e-5)
    assert alpha_for(Acceptance(alpha=alpha).mean_length(k), k) == pytest.approx(alpha, abs=1e-12)


def test_the_published_length_has_its_published_alpha() -> None:
    found = Acceptance(length=3.07, shape=GEOMETRIC)
    assert found.rates(7)[0] == pytest.approx(0.6912, abs=5e-5)
    assert "alpha 0.6912" in found.words(7)


def test_minimum_variance_takes_whole_positions_first() -> None:
    found = Acceptance(length=3.07, shape=MINIMUM_VARIANCE)
    assert found.rates(5) == pytest.approx((1, 1, 0.07, 0, 0))
    assert Acceptance(length=4.0, shape=MINIMUM_VARIANCE).rates(3) == (1, 1, 1)
    assert Acceptance(length=1.0, shape=MINIMUM_VARIANCE).rates(3) == (0, 0, 0)


def test_one_length_in_the_words_of_every_engine() -> None:
    """3.07 tokens a step at K=7: the same mean, told in five ways, and two spreads that are far apart."""
    flat, geometric = (Acceptance(length=3.07, shape=shape) for shape in (MINIMUM_VARIANCE, GEOMETRIC))
    for asked in (flat, geometric):
        rates = asked.rates(7)
        assert sum(rates) == pytest.approx(2.07, abs=1e-9), "accepted drafts: what TensorRT-LLM is told"
        assert sum(rates) / 7 == pytest.approx(0.29571, abs=5e-6), (
            "(AL - 1) / K: an acceptance rate of drafts"
        )
        told = trtllm_acceptance(asked, 7).env["TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"]
        assert float(told) == pytest.approx(2.07, abs=1e-6)
        assert float(sglang_acceptance(asked, 7).env["SGLANG_SIMULATE_ACC_LEN"]) == pytest.approx(3.07)
    assert vllm_acceptance(flat, 7).rates == pytest.approx((1, 1, 0.07, 0, 0, 0, 0))
    constant = alpha_for(3.07, 7)
    assert math.fsum(constant**place for place in range(1, 8)) == pytest.approx(3.07 - 1), "p + ... + p^K"
    assert _spread(flat.rates(7)) == pytest.approx(0.065, abs=5e-4)
    assert _spread(geometric.rates(7)) == pytest.approx(4.69, abs=5e-3)


def _spread(rates: tuple[float, ...]) -> float:
    """Variance of the accepted drafts of a step: P(X >= i) = rates[i]."""
    square = math.fsum((2 * place - 1) * rate for place, rate in enumerate(rates, start=1))
    return square - math.fsum(rates) ** 2


def test_more_positions_than_k_are_cut_and_fewer_are_refused() -> None:
    found = Acceptance(positions=(0.9, 0.5, 0.2))
    assert found.rates(2) == (0.9, 0.5)
    assert found.at(2) == Acceptance(positions=(0.9, 0.5))
    assert "names 3 positions and a draft of k=4" in str(found.refusal(4))
    with pytest.raises(ValueError, match="names 3 positions"):
        found.rates(4)


def test_a_length_out_of_reach_says_what_is_in_it() -> None:
    found = Acceptance(length=4.5, shape=GEOMETRIC)
    assert found.refusal(4) is None
    assert "a step yields 1 to 4 tokens; choose a length within them, or k of 4 or more" in str(
        found.refusal(3)
    )


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "none of them"),
        ({"alpha": 0.5, "length": 2.0, "shape": GEOMETRIC}, "alpha and length"),
        ({"alpha": 1.5}, "drafter.acceptance.alpha is 1.5"),
        ({"length": 0.5, "shape": GEOMETRIC}, "drafter.acceptance.length is 0.5"),
        ({"length": 2.0}, "shape is None"),
        ({"length": 2.0, "shape": "uniform"}, "shape is 'uniform'"),
        ({"positions": ()}, "one probability a position"),
        ({"positions": (0.5, 1.5)}, "one probability a position"),
        ({"positions": (0.5, 0.6)}, "none is larger than the one before"),
        ({"alpha": math.nan}, "drafter.acceptance.alpha is nan"),
    ],
)
def test_what_is_no_acceptance(fields: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Acceptance(**fields)  # type: ignore[arg-type]  # wrong on purpose


def test_labels_tell_forms_and_rates_apart() -> None:
    labels = [
        Acceptance(alpha=0.74).label,
        Acceptance(length=3.07, shape=GEOMETRIC).label,
        Acceptance(length=3.07, shape=MINIMUM_VARIANCE).label,
        Acceptance(positions=(0.8, 0.4)).label,
        Acceptance(positions=(0.7, 0.5)).label,
    ]
    assert labels[:3] == ["a0.74", "l3.07", "l3.07-flat"]
    assert [label.partition("-")[0] for label in labels[3:]] == ["m2.2", "m2.2"]
    assert len(set(labels)) == 5


def test_where_rates_were_measured_is_no_part_of_the_identity() -> None:
    def engine(source: Source | None) -> EngineConfig:
        acceptance = Acceptance(positions=(0.8, 0.4), source=source)
        drafter = Drafter(method="free", k=2, acceptance=acceptance)
        return EngineConfig(engine="vllm", version="1", model=Model(name="m"), drafter=drafter)

    measured = engine(Source(kind="cell", name="c", digest="0" * 64))
    assert measured.digest == engine(None).digest
    back = EngineConfig.from_dict(json.loads(json.dumps(asdict(measured))))
    assert back == measured
    assert back.drafter.label.startswith("free-k2-m2.2-")


def test_vllm_takes_every_form() -> None:
    rates = vllm_acceptance(Acceptance(alpha=0.5), 3)
    assert rates.config == {
        "rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.5, 0.25, 0.125],
    }  # fmt: skip
    assert vllm_acceptance(Acceptance(positions=(0.9, 0.8, 0.1)), 2).rates == (0.9, 0.8)
    flat = vllm_acceptance(Acceptance(length=2.5, shape=MINIMUM_VARIANCE), 3)
    assert flat.config["synthetic_acceptance_length"] == 2.5
    assert "synthetic_acceptance_rates" not in flat.config
    assert flat.rates == (1.0, 0.5, 0.0)
    assert rates.stated is flat.stated is None


@QUICK
@given(acceptances())
def test_every_engine_draws_the_mean_that_is_asked_for(case: tuple[Acceptance, int]) -> None:
    acceptance, k = case
    mean = acceptance.mean_length(k)
    sglang = sglang_acceptance(acceptance, k)
    assert sglang.mean_length == pytest.approx(mean, abs=1e-9)
    assert float(sglang.env["SGLANG_SIMULATE_ACC_LEN"]) == pytest.approx(mean, abs=1e-6)
    assert sglang.one_draw_a_step
    assert vllm_acceptance(acceptance, k).mean_length == pytest.approx(mean)
    if mean < 1.000001:
        return
    trtllm = trtllm_acceptance(acceptance, k)
    assert trtllm.mean_length == pytest.approx(mean, abs=1e-9)
    told = float(trtllm.env["TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"])
    assert told == pytest.approx(mean - 1, abs=1e-6)


def test_what_an_engine_cannot_express_is_stated() -> None:
    asked = Acceptance(alpha=0.74)
    assert "for its whole batch; it accepts" in str(sglang_acceptance(asked, 3).stated)
    assert "positions are not; TensorRT-LLM releases" in str(trtllm_acceptance(asked, 3).stated)
    flat = Acceptance(length=2.5, shape=MINIMUM_VARIANCE)
    assert str(sglang_acceptance(flat, 3).stated).endswith("for its whole batch")
    assert str(trtllm_acceptance(flat, 3).stated).startswith("TensorRT-LLM releases that read whole")
    whole = Acceptance(length=3.0, shape=MINIMUM_VARIANCE)
    assert sglang_acceptance(whole, 3).stated is None
    assert trtllm_acceptance(whole, 3).stated is None
    assert trtllm_acceptance(whole, 3).env == {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": "2"}


def test_what_an_engine_cannot_force_is_refused() -> None:
    with pytest.raises(EngineConfigError, match="cannot force that no draft"):
        trtllm_acceptance(Acceptance(alpha=0.0), 3)
    for translate in (vllm_acceptance, sglang_acceptance, trtllm_acceptance):
        with pytest.raises(EngineConfigError, match="out of reach at k=2"):
            translate(Acceptance(length=3.5, shape=GEOMETRIC), 2)
