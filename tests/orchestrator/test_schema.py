"""Every option of a group has the keys of its schema: then an override fits every swept option."""

import dataclasses
import re
from typing import get_args

import pytest
from omegaconf import OmegaConf

from orchestrator.schema import SpecloadSchema
from orchestrator.sweep import config_folder

SECTIONS = {field.name: field.type for field in dataclasses.fields(SpecloadSchema)}
GROUPS = sorted(path.name for path in config_folder().iterdir() if path.is_dir() and path.name[0] != "_")
OPTIONS = [(group, path) for group in GROUPS for path in sorted((config_folder() / group).glob("*.yaml"))]
OPTIONS = [(group, path) for group, path in OPTIONS if group != "experiment"]


@pytest.mark.parametrize(("group", "path"), OPTIONS, ids=lambda part: getattr(part, "stem", part))
def test_an_option_has_the_keys_of_its_group_and_their_types(group, path):
    option = OmegaConf.load(path)
    schema = SECTIONS[group]
    assert sorted(map(str, option)) == sorted(field.name for field in dataclasses.fields(schema))
    OmegaConf.merge(OmegaConf.structured(schema), option)


@pytest.mark.parametrize(
    "path", sorted((config_folder() / "experiment").glob("*.yaml")), ids=lambda p: p.stem
)
def test_an_experiment_is_global_and_names_its_study(path):
    assert path.read_text().startswith("# @package _global_\n")
    experiment = OmegaConf.load(path)
    assert experiment["name"] == path.stem.replace("_", "-")
    assert experiment["hydra"]["mode"] == "MULTIRUN"


def test_the_experiments_that_the_documentation_names():
    names = {path.stem for path in (config_folder() / "experiment").glob("*.yaml")}
    assert names >= {
        "quickstart",
        "quickstart_vllm",
        "real_vllm_grid",
        "crossover",
        "k_sweep",
        "layout_by_drafter",
    }


def test_no_yml_files():
    """Hydra does not see them."""
    assert not list(config_folder().rglob("*.yml"))


def test_no_path_of_a_machine():
    for path in config_folder().rglob("*.yaml"):
        assert not re.search(r"(^|[\s'\"])/(home|root|mnt|work|tmp|usr)\b", path.read_text()), path


def test_every_section_and_key_is_described():
    """The schema is the documentation of the configuration: each section, and the keys that need a unit."""
    for section in filter(dataclasses.is_dataclass, (*SECTIONS.values(), *get_args(SECTIONS["drafter"]))):
        assert section.__doc__
    source = (config_folder().parent / "orchestrator" / "schema.py").read_text()
    for key in ("blocks", "slots", "cpus_per_device", "max_num_seqs", "max_context", "concurrency"):
        assert re.search(rf'    {key}: [^\n]+\n    """', source), key
