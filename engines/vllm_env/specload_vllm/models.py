"""Build small models: `python -m specload_vllm.models {smollm2|tiny} --out FOLDER`; what is there stays."""

import argparse
import functools
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from specload_vllm import smollm2, tiny
from specload_vllm.folders import build_once

SMOLLM2 = "smollm2-135m-instruct"
TINY = "tiny"


def builders(family: str) -> dict[str, Callable[[Path], None]]:
    """Return folder (below `--out`) -> builder for a family of models."""
    if family == "smollm2":
        # As the checkpoint was published; the engine's dtype flag decides what it computes in.
        return {SMOLLM2: functools.partial(smollm2.build, dtype=torch.bfloat16)}
    drafters = {
        f"{TINY}/{name}": functools.partial(tiny.build_drafter, agreement=agreement)
        for name, agreement in tiny.AGREEMENTS.items()
    }
    return {f"{TINY}/target": tiny.build_target, **drafters}


def main(argv: list[str] | None = None) -> int:
    """Build what is missing and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m specload_vllm.models", description=__doc__)
    parser.add_argument("family", choices=("smollm2", "tiny"))
    parser.add_argument("--out", type=Path, required=True, help="folder for the model folders")
    arguments = parser.parse_args(argv)
    for name, build in builders(arguments.family).items():
        built = build_once(arguments.out / name, build)
        sys.stdout.write(f"{'built' if built else 'found'} {arguments.out / name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
