"""What the emulator will show for a GPU and model, in virtual time: ratios to the baseline over concurrency.

    python benchmarks/emulator_calibration.py --gpu a100 --model llama-3.1-8b --users 1,8,32,64

Random conversations of three turns; a stand-in for choosing the pair and the levels of an experiment.
"""

import argparse
import random

from engines.emulator import EMULATOR_VERSION
from engines.emulator.assembly import assemble
from engines.emulator.virtual import VirtualTurn, play
from engines.spec import Drafter, EngineConfig, Layout, Model

ARMS = (("none", 0), ("eagle3", 3), ("eagle3", 7), ("draft_model", 3), ("ngram", 3))
TURNS = 3


def conversations(count: int, prompt: int, output: int) -> list[list[VirtualTurn]]:
    """Return `count` conversations whose prompts grow by a reply and a question each turn."""
    draw = random.Random(1)
    made = []
    for _ in range(count):
        history = [draw.randrange(32_000) for _ in range(prompt)]
        turns = []
        for _ in range(TURNS):
            turns.append(VirtualTurn(prompt=tuple(history), output_tokens=output))
            history = history + [draw.randrange(32_000) for _ in range(output + prompt // 3)]
        made.append(turns)
    return made


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gpu", default="a100")
    parser.add_argument("--model", default="llama-3.1-8b")
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--dp", type=int, default=1)
    parser.add_argument("--users", default="1,8,32,64")
    parser.add_argument("--prompt", type=int, default=150, help="tokens of a first prompt")
    parser.add_argument("--output", type=int, default=56, help="tokens of a reply")
    options = parser.parse_args()
    print(f"{EMULATOR_VERSION}: modelled, not measured; {options.model} on {options.gpu}, noise off")
    print(
        f"{'users':>5} {'arm':<14} {'seconds':>8} {'tok/s':>8} {'output':>7} {'user':>6} {'hits':>5} "
        f"{'KV tokens':>10}"
    )
    for users in map(int, options.users.split(",")):
        talk = conversations(max(4 * users, 8), options.prompt, options.output)
        base = None
        for method, k in ARMS:
            config = EngineConfig(
                engine="emulator",
                version=EMULATOR_VERSION,
                model=Model(name=options.model),
                drafter=Drafter(method=method, k=k),
                layout=Layout(tp=options.tp, dp=options.dp),
                device="emulated",
                flags={"gpu": options.gpu, "noise": {"start": 0, "drift": 0, "step": 0}},
            )
            engine = assemble(config, start="calibration")
            replay = play(engine.ranks, talk, users=users)
            base = base or replay
            print(
                f"{users:5d} {config.drafter.label:<14} {replay.seconds:8.2f} {replay.output_speed:8.1f} "
                f"{replay.output_speed / base.output_speed:7.2f} {replay.user_speed / base.user_speed:6.2f} "
                f"{replay.hit_rate:5.2f} {engine.kv_tokens * options.dp:10,d}"
            )


if __name__ == "__main__":
    main()
