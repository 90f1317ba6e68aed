"""The published coefficient table against the published speed-ups that were made from it."""

import pytest
from scipy.optimize import minimize_scalar

from engines.emulator.assembly import step_cost
from engines.emulator.costs import PUBLISHED_H100_8B
from engines.emulator.load import StepLoad
from engines.emulator.settings import flags_of

BATCHES = (8, 16, 32, 64, 128)
PUBLISHED = {
    "gsm8k": {
        1: (1.29, (1.28, 1.26, 1.23, 1.19, 1.14)),
        3: (1.81, (1.73, 1.65, 1.52, 1.36, 1.18)),
        5: (2.01, (1.86, 1.73, 1.53, 1.29, 1.07)),
    },
    "instructcoder": {5: (2.38, (2.17, 1.98, 1.74, 1.47, 1.23))},
    "sharegpt": {
        3: (1.74, (1.67, 1.60, 1.50, 1.37, 1.23)),
        5: (1.93, (1.80, 1.68, 1.51, 1.31, 1.12)),
    },
    "cnn": {5: (1.94, (1.76, 1.62, 1.45, 1.28, 1.14))},
}
"""Data set -> K -> (speed-up at batch 1, speed-ups at 8 to 128) of SpecDecode-Bench's fixed-K rows."""


def decode(batch: int, k: int, context: int) -> StepLoad:
    return StepLoad(
        requests=batch,
        drafted=batch if k else 0,
        k=k,
        decode_tokens=batch * (k + 1),
        decode_context=batch * context,
    )


def speed_up(acceptance: float, batch: int, k: int, context: int) -> float:
    cost = PUBLISHED_H100_8B
    return acceptance * cost.seconds(decode(batch, 0, context)) / cost.seconds(decode(batch, k, context))


def worst_error(rows: dict[int, tuple[float, tuple[float, ...]]], context: int) -> float:
    errors = []
    for k, (at_one, columns) in rows.items():
        # Acceptance is what the batch-1 column implies; nothing else of the row is used.
        acceptance = at_one / speed_up(1.0, 1, k, context)
        errors += [
            abs(speed_up(acceptance, batch, k, context) / published - 1.0)
            for batch, published in zip(BATCHES, columns, strict=True)
        ]
    return max(errors)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_columns_come_back_within_seven_percent(name: str):
    rows = PUBLISHED[name]
    fitted = minimize_scalar(
        lambda context: worst_error(rows, round(context)), bounds=(1, 20_000), method="bounded"
    )
    assert worst_error(rows, round(fitted.x)) < 0.07


def test_crossings_of_gsm8k_are_where_they_were_published():
    # K=5 crosses 1 between batch 128 and 256, K=3 between 256 and 512, K=1 not by 512.
    def at(k: int, batch: int) -> float:
        acceptance = PUBLISHED["gsm8k"][k][0] / speed_up(1.0, 1, k, 178)
        return speed_up(acceptance, batch, k, 178)

    assert at(5, 128) > 1 > at(5, 256)
    assert at(3, 256) > 1 > at(3, 512)
    assert at(1, 512) > 1


def test_each_coefficient_is_charged_for_what_it_says():
    cost = PUBLISHED_H100_8B
    base = cost.seconds(decode(4, 0, 100))
    assert base == pytest.approx(3.92645679e-8 * 400 + 2.10103129e-5 * 4 + 5.88590713e-3 + 1.20683946e-3)
    drafted = cost.seconds(decode(4, 3, 100))
    extra = 2.10103129e-5 * 12 + 2.37768493e-9 * 400 + 8.41429603e-7 * 12 + 2.13526175e-3
    assert drafted - base == pytest.approx(extra)


def test_the_flag_chooses_the_table(emulated):
    config = emulated("eagle", 3, cost="table")
    assert step_cost(config, flags_of(config)) is PUBLISHED_H100_8B
