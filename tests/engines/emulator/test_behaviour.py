"""What a sweep over the emulator has to find: the published story, in virtual time and without noise."""

import pytest

from engines.emulator.assembly import assemble
from engines.emulator.memory import OutOfMemoryError
from engines.emulator.virtual import Replay, play
from engines.spec import Drafter, EngineConfig, Layout


@pytest.fixture(scope="session")
def replay(talk):
    def one(config: EngineConfig, users: int, *, start: str = "s", **shape: int) -> Replay:
        conversations = talk(max(4 * users, 8), **shape)
        return play(assemble(config, start=start).ranks, conversations, users=users)

    return one


def test_aggregate_ratio_falls_through_one_as_concurrency_grows(emulated, replay):
    levels = (1, 8, 64)
    base = [replay(emulated(gpu="a100"), users).output_speed for users in levels]

    def ratios(k: int) -> list[float]:
        spec = [replay(emulated("eagle3", k, gpu="a100"), users).output_speed for users in levels]
        return [a / b for a, b in zip(spec, base, strict=True)]

    seven, three = ratios(7), ratios(3)
    assert seven == sorted(seven, reverse=True)
    assert seven[0] > 1.5
    assert seven[1] > 1 > seven[-1]
    # A shorter draft loses less at load: its crossover comes later.
    assert three[0] > 1.5
    assert three[-1] > seven[-1]


def test_one_user_is_faster_with_every_drafter(emulated, replay):
    base = replay(emulated(gpu="a100"), 1).user_speed
    for method in ("free", "ngram", "eagle3", "mtp", "draft_model"):
        assert replay(emulated(method, 3, gpu="a100"), 1).user_speed > 1.05 * base


def test_acceptance_stays_put_while_the_verdict_flips(emulated, talk):
    lengths = []
    for users in (1, 64):
        engine = assemble(emulated("free", 3, alpha=0.74), start="s")
        play(engine.ranks, talk(128), users=users)
        stats = engine.ranks[0].stats
        lengths.append(1 + stats.accepted / stats.drafts)
    assert lengths[0] == pytest.approx(2.6928, rel=0.01)
    # The very same draws, because they hang on the request and not on its batch.
    assert lengths[0] == lengths[1]


def test_counters_are_what_the_users_got(emulated, talk):
    engine = assemble(emulated("eagle3", 3, layout=Layout(dp=2), kv_tokens=2000, max_context=512), start="s")
    result = play(engine.ranks, talk(40), users=20)
    stats = [rank.stats for rank in engine.ranks]
    assert sum(one.generation for one in stats) == result.output_tokens == 40 * 3 * 56
    assert sum(one.prompt for one in stats) == sum(served.prompt_tokens for served in result.served)
    assert sum(one.prompt_cached for one in stats) == sum(served.cached_tokens for served in result.served)
    assert sum(one.succeeded for one in stats) == 120
    assert sum(one.preemptions for one in stats) > 0


def test_data_parallelism_loses_prefixes_and_tensor_parallelism_does_not(emulated, replay):
    hits = {
        layout.label: replay(emulated(layout=layout), 12, turns=4, spread=30).hit_rate
        for layout in (Layout(tp=2), Layout(dp=2), Layout(dp=4))
    }
    assert hits["tp2"] > hits["dp2"] + 0.05
    assert hits["dp2"] > hits["dp4"] + 0.05


def test_tensor_parallelism_is_for_one_user_and_data_parallelism_for_many(emulated, replay):
    tp, dp = emulated(gpu="l40s", layout=Layout(tp=2)), emulated(gpu="l40s", layout=Layout(dp=2))
    long = {"turns": 1, "prompt": 2000, "output": 8}
    assert replay(tp, 1).user_speed > 1.3 * replay(dp, 1).user_speed
    # Over PCIe the all-reduces of long prompts cost more than reading weights twice.
    assert replay(dp, 16, **long).total_speed > 1.05 * replay(tp, 16, **long).total_speed


def test_a_heavier_drafter_leaves_fewer_kv_tokens(emulated):
    def tokens(method: str, k: int = 3) -> int:
        return assemble(emulated(method, k), start="s").kv_tokens

    assert tokens("none", 0) == tokens("ngram") > tokens("eagle3") > tokens("draft_model")


def test_two_devices_hold_more_than_twice_the_kv_of_one(emulated):
    # Weights are shared between them, and so leave more room.
    one = assemble(emulated(), start="s").kv_tokens
    assert assemble(emulated(layout=Layout(tp=2)), start="s").kv_tokens > 2 * one
    assert assemble(emulated(layout=Layout(dp=2)), start="s").kv_tokens == one


def test_a_full_cache_makes_requests_wait(emulated, replay):
    roomy, tight = replay(emulated(), 16), replay(emulated(kv_tokens=4096), 16)
    assert tight.seconds > roomy.seconds


@pytest.mark.parametrize(
    "config",
    [
        {"model": "llama-3.1-70b", "gpu": "h100"},
        {"model": "qwen3-32b", "gpu": "l40s"},
        {"gpu": "l4", "max_context": 131_072},
        {"kv_tokens": 2048},
    ],
)
def test_what_does_not_fit_is_out_of_memory(emulated, config):
    with pytest.raises(OutOfMemoryError, match="out of memory"):
        assemble(emulated(**config), start="s")


def test_seventy_billion_fit_four_devices(emulated):
    assert assemble(emulated(model="llama-3.1-70b", layout=Layout(tp=4)), start="s").kv_tokens > 100_000


def test_the_same_start_repeats_to_the_last_digit_and_another_does_not(emulated, replay):
    noisy = emulated("eagle3", 3, noise={"start": 0.02, "drift": 0.004, "step": 0.02})
    first, again, other = (replay(noisy, 4, start=start).seconds for start in ("a", "a", "b"))
    assert first == again
    assert first != other
    assert abs(first / other - 1) < 0.15


def test_engine_seed_changes_the_start(emulated, replay):
    def seconds(seed: int) -> float:
        return replay(emulated(seed=seed, noise={"start": 0.02, "drift": 0, "step": 0}), 2).seconds

    assert seconds(0) != seconds(1)


def test_options_set_the_acceptance_and_synthetic_acceptance_wins(emulated, talk):
    def mean_length(drafter: Drafter) -> float:
        engine = assemble(emulated(drafter=drafter), start="s")
        play(engine.ranks, talk(60), users=8)
        return 1 + engine.ranks[0].stats.accepted / engine.ranks[0].stats.drafts

    forced = emulated("eagle3", 3, alpha=0.9).drafter
    assert mean_length(Drafter(method="eagle3", k=3, options={"alpha": 0.2})) == pytest.approx(
        1.248, rel=0.03
    )
    assert mean_length(forced) == pytest.approx(3.439, rel=0.03)
