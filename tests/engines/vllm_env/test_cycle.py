"""What a table of wrong tokens comes to, against known answers and against drafting token by token."""

import random

import pytest

from engines.vllm_env.specload_vllm.cycle import acceptance_rates, acceptance_table, mean_length


@pytest.mark.parametrize(
    ("right", "k", "rates"),
    [
        ([True] * 5, 3, (1.0, 1.0, 1.0)),
        ([False] * 5, 3, (0.0, 0.0, 0.0)),
        # Each step ends behind the wrong token, where three right ones follow.
        ([True, True, True, False], 3, (1.0, 1.0, 1.0)),
        ([True, True, True, False], 4, (1.0, 1.0, 1.0, 0.0)),
        # Three tokens a step from a cycle of four: steps start at 0, 3, 0, ... and at 3 nothing is accepted.
        ([True, True, True, False], 2, (0.5, 0.5)),
        # The run of right tokens goes on over the end of the cycle.
        ([True, False, True], 4, (1.0, 1.0, 0.0, 0.0)),
        ([False], 2, (0.0, 0.0)),
    ],
)
def test_rates_of_tables_one_can_count(right: list[bool], k: int, rates: tuple[float, ...]) -> None:
    assert acceptance_rates(right, k) == pytest.approx(rates)


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_rates_are_those_of_drafting_token_by_token(share: float, k: int) -> None:
    draw = random.Random(k)
    size = 499
    right = [draw.random() < share for _ in range(size)]
    following = [(token + 1) % size for token in range(size)]
    drafts = [following[token] if right[token] else (token + 7) % size for token in range(size)]
    last, accepted, steps = 0, [0] * k, 20_000
    for _ in range(steps):
        proposal = last
        for position in range(k):
            proposal = drafts[proposal]
            if proposal != following[last]:
                break
            accepted[position] += 1
            last = following[last]
        last = following[last]
    rates = acceptance_rates(right, k)
    # A lap and more at the start may lie before the part that repeats.
    assert rates == pytest.approx([count / steps for count in accepted], abs=0.02)
    assert mean_length(rates) == pytest.approx(1 + sum(accepted) / steps, rel=0.01)


def test_a_table_in_random_order_accepts_every_position_alike() -> None:
    draw = random.Random(3)
    right = [draw.random() < 0.6 for _ in range(40_000)]
    rates = acceptance_table(right, 4)["4"]
    conditional = [rate / before for rate, before in zip(rates, [1.0, *rates], strict=False)]
    assert conditional == pytest.approx([0.6] * 4, abs=0.02)
    assert mean_length(rates) == pytest.approx((1 - 0.6**5) / (1 - 0.6), rel=0.02)
