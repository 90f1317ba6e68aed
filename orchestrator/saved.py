"""Saved plans: `plan.json` read back."""

import json
from pathlib import Path

from orchestrator.errors import ConfigError
from orchestrator.plan import Plan


def read_plan(path: Path) -> Plan:
    """Return the plan in a `plan.json`, or in the sweep's folder.

    Raises:
        ConfigError: missing, damaged, of another version, or changed by hand.
    """
    file = path / "plan.json" if path.is_dir() else path
    try:
        return Plan.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        message = (
            f"{file} cannot be read ({error.strerror}); give results/SWEEP/plan.json of an earlier sweep"
        )
        raise ConfigError(message) from error
    except (KeyError, TypeError, AttributeError) as error:
        message = f"{file} is no plan of this version ({type(error).__name__}: {error})"
        raise ConfigError(message) from error
    except ValueError as error:
        message = f"{file} cannot be used: {error}"
        raise ConfigError(message) from error
