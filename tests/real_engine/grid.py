"""Engine configurations that the options of `conf/` can be combined to, with checkpoints that are here."""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from engines.spec import EngineConfig, Model
from orchestrator.arms import engine_config
from orchestrator.schema import SpecloadSchema
from orchestrator.sweep import config_folder

LENGTHS = (1, 3, 7)
FEW = ("none", "ngram", "eagle3", "free")
AXES = ("layout", "cache", "decode")


def options(group: str) -> list[str]:
    """Return the names of a group's options."""
    return sorted(path.stem for path in (config_folder() / group).glob("*.yaml"))


def option(group: str, name: str) -> Any:
    return OmegaConf.load(config_folder() / group / f"{name}.yaml")


class Grid:
    """The configurations of one kind of device."""

    def __init__(self, engine: str, checkpoints: Mapping[str, str], models: Mapping[str, Model]) -> None:
        """Take what `engine=` is, a checkpoint by method, and the models `target`, `mtp` and `experts`."""
        self._base = OmegaConf.structured(SpecloadSchema)
        self._parts = {
            group: {name: self._read(group, name) for name in options(group)} for group in (*AXES, "drafter")
        }
        self._engine = self._read("engine", engine)
        self._checkpoints = checkpoints
        self._models = models

    def configs(
        self, python: str, version: str, *, whole: bool = False
    ) -> Iterator[tuple[dict[str, str], EngineConfig]]:
        """Yield the choices and the configuration of combinations; baselines have no K.

        A line is made of the drafter's words, the layout's, and those of cache and decode. Unless the `whole`
        product is asked for, every drafter and K meets every layout, and every cache with every decode; and
        these meet every layout for the drafters of `FEW`.
        """
        drafters = self._parts["drafter"]
        points = [
            (name, k) for name in drafters for k in ((0,) if drafters[name]["method"] == "none" else LENGTHS)
        ]
        for (drafter, k), *chosen in itertools.product(points, *(self._parts[axis] for axis in AXES)):
            layout, *strategy = chosen
            few = drafter in FEW and k in (0, 3)
            if whole or few or layout == "tp1" or strategy == ["cold", "default"]:
                choices = {"drafter": drafter, "k": str(k), **dict(zip(AXES, chosen, strict=True))}
                yield choices, self._config(choices, k, python, version)

    def _config(self, choices: Mapping[str, str], k: int, python: str, version: str) -> EngineConfig:
        drafter = {**self._parts["drafter"][choices["drafter"]], "k": k}
        if drafter["model"] is None:
            drafter["model"] = self._checkpoints.get(drafter["method"])
        point = {axis: self._parts[axis][choices[axis]] for axis in AXES}
        point |= {"engine": self._engine, "drafter": drafter, "seed": 0, "results": ""}
        made = engine_config(point, python=python, version=version, model=self._models["target"])
        if made.layout.expert_parallel:
            return replace(made, model=self._models["experts"])
        return replace(made, model=self._models["mtp"]) if drafter["method"] == "mtp" else made

    def _read(self, group: str, name: str) -> Any:
        merged = OmegaConf.merge(self._base[group], option(group, name))
        return OmegaConf.to_container(merged, throw_on_missing=True)


def mixture_of_experts(folder: Path, target: Path) -> str:
    """Write the configuration of a small mixture of experts, with the target's tokenizer."""
    folder.mkdir()
    for path in target.iterdir():
        if "tokenizer" in path.name:
            (folder / path.name).symlink_to(path)
    facts = json.loads((target / "config.json").read_text())
    facts |= {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }
    (folder / "config.json").write_text(json.dumps(facts))
    return str(folder)


def with_mask_token(folder: Path, checkpoint: Path) -> str:
    """Write a checkpoint's configuration with a mask token: one that drafts all tokens in one pass."""
    folder.mkdir()
    facts = json.loads((checkpoint / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**facts, "pard_token": 511}))
    return str(folder)
