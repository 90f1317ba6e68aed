"""The keys of `drafter.acceptance`: one form of it at most is set."""

import re
from collections.abc import Mapping
from typing import Any

from engines.nearest import did_you_mean
from orchestrator.errors import ConfigError

PREFIX = "drafter.acceptance"
FORMS = ("alpha", "length", "positions", "from", "file")
"""Keys that give an acceptance; one of them at most is set."""
DETAILS: Mapping[str, str] = {"shape": "length", "row": "file"}
"""Keys that say more of a form, and that form."""
ACCEPTANCE_KEYS = ("alpha", "length", "shape", "positions", "from", "file", "row")
"""Every key of `drafter.acceptance`; all null: real acceptance."""


def settled(settings: Mapping[str, Any] | None, choices: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of one point with one form at most: the user's own words replace a conf file's.

    A drafter that comes with `alpha` takes `drafter.acceptance.length=3` as it is meant, without a word on
    `alpha`. Two forms in the user's words, or two in conf files, stay a contradiction.

    Args:
        settings: what Hydra composed.
        choices: the user's overrides, key to value as text.

    Raises:
        ConfigError: an unknown key, two forms, or a detail of a form that is not given.
    """
    given = dict(settings or {})
    for key in given:
        if key not in ACCEPTANCE_KEYS:
            guess = did_you_mean(key, ACCEPTANCE_KEYS)
            message = f"there is no key {PREFIX}.{key}{guess}; {PREFIX} has {', '.join(ACCEPTANCE_KEYS)}"
            raise ConfigError(message)
    own = {key.removeprefix(f"{PREFIX}.") for key in choices if key.startswith(f"{PREFIX}.")}
    own |= set(re.findall(r"(\w+)\s*:", choices.get(PREFIX, "")))
    forms = [key for key in FORMS if given.get(key) is not None]
    if len(forms) > 1:
        meant = [key for key in forms if key in own]
        if len(meant) != 1:
            told = " and ".join(f"{PREFIX}.{key}" for key in forms)
            message = (
                f"{told} are set; acceptance is given in one form: set the others to null, as in "
                f"{PREFIX}.{forms[0]}=null"
            )
            raise ConfigError(message)
        forms = meant
    for detail, form in DETAILS.items():
        if given.get(detail) is None or form in forms:
            continue
        if detail in own:
            message = f"{PREFIX}.{detail} says how {PREFIX}.{form} is read, which is not set; remove it"
            raise ConfigError(message)
        given[detail] = None
    kept = {*forms, *DETAILS}
    return {key: given.get(key) if key in kept else None for key in ACCEPTANCE_KEYS}
