"""Keys that do not exist, and the ones that were meant."""

import pytest

from orchestrator.errors import ConfigError
from orchestrator.known_keys import check_known, unknown_key


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("draftr", "drafter"),
        ("load.concurency", "load.concurrency"),
        ("drafter.option.alpha", "drafter.options"),
        ("cache.connector.nam", "cache.connector.name"),  # in a section that may be absent
        ("concurrency", "load.concurrency"),  # the right name in the wrong place
        ("engine.blocks", "design.blocks"),
        ("path", "model.path"),
    ],
)
def test_the_key_that_was_meant_is_named(key: str, meant: str) -> None:
    assert f"(did you mean {meant}?)" in unknown_key(key)


def test_without_a_like_one_the_neighbours_are_named() -> None:
    assert unknown_key("timeouts.zzz").startswith("there is no key timeouts.zzz; timeouts has ready, ")


@pytest.mark.parametrize("key", ["drafter.k", "drafter", "engine.flags.anything", "drafter.options.alpha"])
def test_a_key_of_the_schema_and_an_entry_of_an_open_map_are_known(key: str) -> None:
    assert unknown_key(key) == ""


def test_a_composed_configuration_is_held_against_the_schema() -> None:
    check_known({"drafter": {"k": 3, "options": {"x": 1}, "acceptance": None}})
    with pytest.raises(ConfigError, match=r"no key drafter\.kk \(did you mean drafter\.k\?\)"):
        check_known({"drafter": {"kk": 3}})
