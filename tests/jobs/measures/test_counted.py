from collections.abc import Callable

import pytest

from engines.counters import Counters
from jobs.measures import counted

Make = Callable[..., Counters]


def test_published_acceptance_of_one_request(make_counters: Make) -> None:
    # 43 steps, histogram of accepted drafts [39, 1, 0, 3].
    counters = make_counters(drafts=43, draft_tokens=129, accepted_tokens=10, accepted_per_position=(4, 3, 3))
    assert counted.mean_acceptance_length(counters) == pytest.approx(1.2325581395348837)
    assert counted.acceptance_rate(counters) == pytest.approx(0.07751937984496124)
    assert counted.acceptance_by_position(counters) == pytest.approx(
        {"spec/acceptance_pos_1": 4 / 43, "spec/acceptance_pos_2": 3 / 43, "spec/acceptance_pos_3": 3 / 43}
    )


def test_positions_add_up_to_the_mean_acceptance_length(make_counters: Make) -> None:
    counters = make_counters()
    positions = counted.acceptance_by_position(counters).values()
    assert counted.mean_acceptance_length(counters) == pytest.approx(
        1 + sum(value or 0 for value in positions)
    )


def test_a_baseline_has_one_token_a_step(make_counters: Make) -> None:
    counters = make_counters(
        drafts=0, draft_tokens=0, accepted_tokens=0, accepted_per_position=(), step_intervals=180
    )
    assert counted.mean_acceptance_length(counters) == 1.0
    assert counted.acceptance_rate(counters) is None
    assert counted.acceptance_by_position(counters) == {}
    assert counted.tokens_per_step(counters) == 1.0


def test_steps_without_drafts_are_in_tokens_per_step_only(make_counters: Make) -> None:
    # 80 steps, 64 of them drafted: 180 tokens follow the 20 first ones.
    counters = make_counters()
    assert counted.tokens_per_step(counters) == 180 / 80
    assert counted.mean_acceptance_length(counters) == 1 + 100 / 64


def test_step_time_and_hit_rate(make_counters: Make) -> None:
    assert counted.step_ms(make_counters()) == pytest.approx(10.0)
    assert counted.hit_rate(make_counters()) == pytest.approx(0.3)
    idle = make_counters(step_intervals=0, prompt_tokens=0)
    assert counted.step_ms(idle) is None
    assert counted.tokens_per_step(idle) is None
    assert counted.hit_rate(idle) is None


def test_conditional_acceptance_is_of_what_came_so_far(make_counters: Make) -> None:
    counters = make_counters(drafts=43, draft_tokens=129, accepted_tokens=10, accepted_per_position=(4, 3, 3))
    assert counted.conditional_by_position(counters) == pytest.approx(
        {"spec/conditional_pos_1": 4 / 43, "spec/conditional_pos_2": 3 / 4, "spec/conditional_pos_3": 1.0}
    )
    nothing = make_counters(drafts=5, accepted_tokens=0, accepted_per_position=(0, 0))
    assert counted.conditional_by_position(nothing) == {
        "spec/conditional_pos_1": 0.0,
        "spec/conditional_pos_2": None,
    }
    assert counted.conditional_by_position(make_counters(drafts=0, accepted_per_position=())) == {}


def test_computed_tokens_are_local_prompt_and_generated(make_counters: Make) -> None:
    assert counted.computed_tokens(make_counters()) == 1400 + 200


@pytest.mark.parametrize(
    ("figure", "needs"),
    [
        (counted.mean_acceptance_length, {"accepted_tokens"}),
        (counted.acceptance_rate, {"draft_tokens"}),
        (counted.tokens_per_step, {"first_tokens"}),
        (counted.step_ms, {"step_seconds"}),
        (counted.hit_rate, {"cached_prompt_tokens"}),
        (counted.computed_tokens, {"computed_prompt_tokens"}),
    ],
)
def test_a_figure_without_its_counters_is_unknown(
    make_counters: Make, figure: Callable[[Counters], float | None], needs: set[str]
) -> None:
    assert figure(make_counters()) is not None
    assert figure(make_counters(absent=frozenset(needs))) is None
