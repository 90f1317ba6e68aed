"""Build small models: `python -m specload_vllm.models {smollm2|tiny} --out FOLDER`; what is there stays."""

import argparse
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from specload_vllm import smollm2, tiny, tiny_dflash, tiny_eagle, tiny_medusa, tiny_mtp
from specload_vllm.folders import build_once

SMOLLM2 = "smollm2-135m-instruct"
TINY = "tiny"
AGREEMENT = 0.6
"""Share of tokens on which the drafters of all families agree with the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """One model folder."""

    build: Callable[[Path], None]
    """Writes it."""
    proof: str = tiny.ACCEPTANCE_FILE
    """File that shows it is there."""


def folders(family: str) -> dict[str, Folder]:
    """Return the folders of a family of models by their names below `--out`."""
    if family == "smollm2":
        # As the checkpoint was published; the engine's dtype flag decides what it computes in.
        build = functools.partial(smollm2.build, dtype=torch.bfloat16)
        return {SMOLLM2: Folder(build=build, proof="config.json")}
    drafters = {
        "draft30": functools.partial(tiny.build_drafter, agreement=0.3),
        "draft60": functools.partial(tiny.build_drafter, agreement=AGREEMENT),
        "draft90": functools.partial(tiny.build_drafter, agreement=0.9),
        "eagle": functools.partial(tiny_eagle.build_eagle, agreement=AGREEMENT),
        "eagle3": functools.partial(tiny_eagle.build_eagle3, agreement=AGREEMENT),
        "medusa": functools.partial(tiny_medusa.build_medusa, agreement=AGREEMENT),
        "dflash": functools.partial(tiny_dflash.build_dflash, agreement=AGREEMENT),
        "mtp": functools.partial(tiny_mtp.build_mtp, agreement=AGREEMENT),
    }
    return {
        f"{TINY}/target": Folder(build=tiny.build_target, proof="config.json"),
        **{f"{TINY}/{name}": Folder(build=build) for name, build in drafters.items()},
    }


def main(argv: list[str] | None = None) -> int:
    """Build what is missing and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m specload_vllm.models", description=__doc__)
    parser.add_argument("family", choices=("smollm2", "tiny"))
    parser.add_argument("--out", type=Path, required=True, help="folder for the model folders")
    arguments = parser.parse_args(argv)
    for name, folder in folders(arguments.family).items():
        built = build_once(arguments.out / name, folder.build, proof=folder.proof)
        sys.stdout.write(f"{'built' if built else 'found'} {arguments.out / name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
