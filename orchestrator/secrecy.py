"""Secrets stay out of plans: a plan is written to disk, to MLflow and into the report."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from orchestrator.errors import ConfigError

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIAL", re.IGNORECASE)
_HARMLESS = re.compile(r"TOKENIZER|TOKENS", re.IGNORECASE)


def check_no_secrets(config: Mapping[str, Any]) -> None:
    """Refuse a configuration that would write a secret into the plan.

    Raises:
        ConfigError: names the key, never the value.
    """
    for name in config["engine"]["env"]:
        if _SECRET_NAME.search(_HARMLESS.sub("", name)):
            message = (
                f"engine.env.{name} looks like a secret, and a plan is written to disk and to MLflow. Models "
                "are read from folders, so engines need no token: fetch the model first and leave this key "
                "out"
            )
            raise ConfigError(message)
    if urlsplit(config["tracking"]["uri"] or "").password:
        message = (
            "tracking.uri holds a password, and a plan is written to disk and to MLflow. Leave it out: an "
            "MLflow server takes MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD from the environment"
        )
        raise ConfigError(message)
