"""The keys of drafter.acceptance: which form is meant, and what value comes of it."""

from typing import Any

import pytest
from omegaconf import OmegaConf

from engines.acceptance import GEOMETRIC, MINIMUM_VARIANCE, Acceptance
from orchestrator.acceptance import acceptance_of
from orchestrator.acceptance_keys import ACCEPTANCE_KEYS, settled
from orchestrator.errors import ConfigError
from orchestrator.sweep import collect, config_folder


def keys(**given: Any) -> dict[str, Any]:
    """What Hydra composes: every key, most of them null."""
    return {**dict.fromkeys(ACCEPTANCE_KEYS), **given}


@pytest.mark.parametrize(
    ("given", "choices", "left"),
    [
        (keys(alpha=0.74), {}, {"alpha": 0.74}),
        (keys(alpha=0.74, length=3.0), {"drafter.acceptance.length": "3"}, {"length": 3.0}),
        (keys(alpha=0.74, length=3.0), {"drafter.acceptance": "{length: 3}"}, {"length": 3.0}),
        (
            keys(alpha=0.74, length=3.0, shape="geometric"),
            {"drafter.acceptance.length": "3", "drafter.acceptance.shape": "geometric"},
            {"length": 3.0, "shape": "geometric"},
        ),
        # A conf file's length, with its shape, gives way to an alpha.
        (keys(alpha=0.5, length=3.0, shape="geometric"), {"drafter.acceptance.alpha": ".5"}, {"alpha": 0.5}),
        (keys(length=3.0), {"drafter.acceptance.alpha": "null"}, {"length": 3.0}),
        (keys(**{"from": "c"}, alpha=0.7), {"drafter.acceptance.from": "c"}, {"from": "c"}),
        (None, {}, {}),
        ({"alpha": None}, {}, {}),
    ],
)
def test_the_users_form_replaces_a_conf_files(
    given: dict[str, Any] | None, choices: dict[str, str], left: dict[str, Any]
) -> None:
    found = settled(given, choices)
    assert {key: value for key, value in found.items() if value is not None} == left
    assert tuple(found) == ACCEPTANCE_KEYS


@pytest.mark.parametrize(
    ("given", "choices", "told"),
    [
        (keys(alpha=0.7, length=3.0), {}, "drafter.acceptance.alpha and drafter.acceptance.length are set"),
        (
            keys(alpha=0.7, length=3.0),
            {"drafter.acceptance.alpha": ".7", "drafter.acceptance.length": "3"},
            "acceptance is given in one form",
        ),
        (keys(alpha=0.7, row="on"), {"drafter.acceptance.row": "on"}, "how drafter.acceptance.file is read"),
        (keys(shape="geometric"), {"drafter.acceptance.shape": "geometric"}, "length is read, which is not"),
        ({"beta": 1}, {}, r"there is no key drafter\.acceptance\.beta; drafter\.acceptance has alpha"),
    ],
)
def test_contradictions_are_said(given: dict[str, Any], choices: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        settled(given, choices)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (keys(), None),
        (None, None),
        (keys(alpha=1), Acceptance(alpha=1.0)),
        (keys(length=2.5), Acceptance(length=2.5, shape=GEOMETRIC)),
        (keys(length=2.5, shape=MINIMUM_VARIANCE), Acceptance(length=2.5, shape=MINIMUM_VARIANCE)),
        (keys(positions=[0.9, 0.5, 0.1, 0]), Acceptance(positions=(0.9, 0.5, 0.1))),
        # Too few for k=3: kept as they are, and a rule refuses that arm alone.
        (keys(positions=[0.9]), Acceptance(positions=(0.9,))),
    ],
)
def test_each_form_becomes_its_value(given: dict[str, Any] | None, value: Acceptance | None) -> None:
    assert acceptance_of(given, k=3, results="results") == value


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (keys(alpha="high"), "drafter.acceptance.alpha is 'high'; it takes a number"),
        (keys(alpha=True), "it takes a number"),
        (keys(length=0.5), "choose 1 to k"),
        (keys(length=2, shape="flat"), "shape is 'flat'; with a length it is one of geometric, minimum_var"),
        (keys(positions="0.9,0.5"), "it takes a list of numbers"),
        (keys(positions=[0.5, 0.9]), "none is larger than the one before"),
    ],
)
def test_what_is_no_value_is_said(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        acceptance_of(given, k=3, results="results")


def test_a_drafter_that_comes_with_alpha_takes_a_length_or_positions() -> None:
    words = ["-m", "drafter=free", "drafter.acceptance={length:2.5},{positions:[.9,.5,.1]},{alpha:.5}"]
    points = collect(words)
    found = [acceptance_of(point.at("drafter.acceptance"), k=3, results="results") for point in points]
    assert found == [
        Acceptance(length=2.5, shape=GEOMETRIC),
        Acceptance(positions=(0.9, 0.5, 0.1)),
        Acceptance(alpha=0.5),
    ]


def test_conf_files_name_known_keys_only() -> None:
    for path in (config_folder() / "drafter").glob("*.yaml"):
        settled(OmegaConf.load(path)["acceptance"], {})
