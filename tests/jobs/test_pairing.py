"""Cells against the opening baseline of their segment, and without one."""

from engines.spec import Drafter, EngineConfig, Model
from jobs.caveats import pairing_caveats
from jobs.gates import Delivered
from jobs.load import LoadLevel
from jobs.pairing import Pairing, Side

BASELINE = EngineConfig(engine="emulator", version="1", model=Model(name="m"), device="emulated")
DRAFTED = EngineConfig(
    engine="emulator",
    version="1",
    model=Model(name="m"),
    device="emulated",
    drafter=Drafter(method="ngram", k=3),
)
LEVEL = LoadLevel(concurrency=4)


def side(block_size: int = 16) -> Side:
    work = Delivered(
        requests=1,
        requested_prompt_tokens=8,
        requested_output_tokens=2,
        prompt_tokens=8,
        output_tokens=2,
    )
    return Side(
        resolved={"cache.block_size": block_size}, delivered=work, window_turns=frozenset({("a", 0, 0)})
    )


def test_a_cell_is_held_against_the_opening_baseline_of_its_level() -> None:
    pairing = Pairing()
    assert not pairing.hold(BASELINE, LEVEL, side(), drafter_keys=()).alone
    held = pairing.hold(DRAFTED, LEVEL, side(block_size=32), drafter_keys=())
    assert [gate.name for gate in held.gates if gate.failed] == ["configuration"]
    assert held.turn_overlap == 1.0
    assert not held.alone


def test_a_cell_that_nobody_could_hold_against_a_baseline_says_so() -> None:
    pairing = Pairing()
    held = pairing.hold(DRAFTED, LEVEL, side(), drafter_keys=())
    assert held.alone
    assert held.gates == ()
    (caveat,) = pairing_caveats(alone=held.alone)
    assert "configuration and equal_work are missing" in caveat
    assert pairing_caveats(alone=False) == ()
    other = LoadLevel(concurrency=8)
    pairing.hold(BASELINE, other, side(), drafter_keys=())
    assert pairing.hold(DRAFTED, LEVEL, side(), drafter_keys=()).alone
