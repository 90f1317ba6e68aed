"""Acceptance that a checkpoint was built to have, as the file beside its weights tells."""

import json
from pathlib import Path

from engines.spec import EngineConfig
from orchestrator.errors import ConfigError
from orchestrator.models import folder_digest
from orchestrator.plan import Plan

FILE = "acceptance.json"
"""Beside a checkpoint: `rates` has, for each K as text, the K unconditional acceptance rates."""
_SCHEDULE = "num_speculative_tokens_per_batch_size"


def built_lengths(plan: Plan) -> dict[str, float]:
    """Return the built-in mean acceptance length of each arm whose checkpoint tells one, by the arm's digest.

    Left out are arms with forced acceptance or with a K that follows the batch size, and checkpoints that are
    not there any more or not those of the plan.

    Raises:
        ConfigError: a checkpoint's file that is damaged.
    """
    lengths = {arm.digest: _length(arm.config) for arm in plan.arms}
    return {digest: length for digest, length in lengths.items() if length is not None}


def _length(config: EngineConfig) -> float | None:
    drafter = config.drafter
    if drafter.acceptance is not None or _SCHEDULE in drafter.options or drafter.k == 0:
        return None
    # A model that drafts with layers of its own brings its drafter along.
    own = drafter.method == "mtp" and drafter.model is None
    path, known = (config.model.path, config.model.digest) if own else (drafter.model, drafter.model_digest)
    if path is None:
        return None
    folder = Path(path)
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        rates = content["rates"].get(str(drafter.k))
        built = None if rates is None else 1.0 + sum(rates)
    except OSError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        message = f"{folder / FILE} is damaged ({error}); make the checkpoint again, or remove the file"
        raise ConfigError(message) from error
    return None if known is not None and folder_digest(folder) != known else built
