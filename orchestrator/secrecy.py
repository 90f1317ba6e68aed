"""Secrets stay out of what a sweep writes and prints.

Two lines of defence. A configuration with a secret in it is refused before anything is written, because a
plan goes to disk, to MLflow, to the cluster and into the report. And text that comes from elsewhere (an
engine's log, a library's error, an address) is cleaned by `redacted` before it is stored or printed.
"""

import functools
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from orchestrator.errors import ConfigError

MASK = "***"
SHORTEST = 8
"""A value of fewer characters is no secret worth the name, and would be found in innocent words."""

_ALWAYS = r"SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL"
_ENV_NAME = re.compile(rf"TOKEN|{_ALWAYS}", re.IGNORECASE)
_KEY_NAME = re.compile(rf"(?:^|[._-])TOKEN$|{_ALWAYS}", re.IGNORECASE)
_HARMLESS = re.compile(r"TOKENIZERS?|TOKENS", re.IGNORECASE)
_PLACE = re.compile(r"_(?:PATH|FILE|DIR)$", re.IGNORECASE)
"""A variable of such a name says where a secret lies, which is none."""
_QUERY = (
    "sig|signature|token|access_token|id_token|api_?key|password|secret"
    "|x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)"
)
_QUERY_NAME = re.compile(rf"(?:{_QUERY})\Z", re.IGNORECASE)

_NAMES_ONLY = "engine.flags.headers."
"""Below it stand names of variables, which the adapter sees to: a header may well be called `X-Secret`."""

_SHAPES = re.compile(
    r"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
"""Tokens that are known by their form: model hubs, model APIs, code hosts, chat, clouds, JWT, PEM keys."""
# Each pattern begins with something fixed: logs are long, and a name matched from its start costs its length
# squared where no secret follows.
_USERINFO = re.compile(r"(?<=://)[^/\s@'\"]+@")
_IN_QUERY = re.compile(rf"([?&](?:{_QUERY})=)[^&\s'\"#]+", re.IGNORECASE)
_BEARER = re.compile(r"(\bBearer\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_NAMED = re.compile(
    rf"((?:(?:{_ALWAYS})[A-Za-z0-9_]{{0,40}}|(?<![A-Za-z])TOKEN)[\"']?\s{{0,3}}(?:=|:\s)\s{{0,3}}[\"']?)"
    r"([^\s\"',;&}\]]{4,})",
    re.IGNORECASE,
)
"""`HF_TOKEN=...`, `"api_key": "..."`."""
_OPTION_NAME = "token|" + _ALWAYS.lower().replace("_?", "[_-]?")
_OPTION = re.compile(rf"((?<!-)--(?:[a-z][a-z_-]{{0,40}}[_-])?(?:{_OPTION_NAME})[= ])(\S{{4,}})")
"""`--api-key ...`, as it stands in a command line."""


def check_no_secrets(config: Mapping[str, Any]) -> None:
    """Refuse a configuration that would write a secret into the plan.

    Raises:
        ConfigError: names the key, never the value.
    """
    for name in config["engine"]["env"]:
        if _ENV_NAME.search(_HARMLESS.sub("", name)):
            message = (
                f"engine.env.{name} looks like a secret, and a plan is written to disk and to MLflow. Models "
                "are read from folders, so engines need no token: fetch the model first and leave this key "
                "out"
            )
            raise ConfigError(message)
    secrets = _own_secrets()
    for key, value in _texts(config):
        _check_value(key, value, secrets)


def check_url(key: str, url: str) -> None:
    """Refuse a URL that carries a secret: a password, a user of a web address, or a signed query.

    Raises:
        ConfigError: names the key, never the value.
    """
    if (found := _url_secret(url)) is None:
        return
    if key == "tracking.uri":
        remedy = (
            "an MLflow server takes MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD from the "
            "environment"
        )
    else:
        remedy = "storage takes its credentials from the environment or a file of the machine that uses it"
    message = f"{key} holds {found}, and a plan is written to disk and to MLflow. Leave it out: {remedy}"
    raise ConfigError(message)


def redacted(text: str) -> str:
    """Return `text` without what is or looks like a secret."""
    for secret in _own_secrets():
        text = text.replace(secret, MASK)
    text = _SHAPES.sub(MASK, text)
    text = _USERINFO.sub(f"{MASK}@", text)
    text = _IN_QUERY.sub(rf"\g<1>{MASK}", text)
    text = _BEARER.sub(rf"\g<1>{MASK}", text)
    text = _OPTION.sub(rf"\g<1>{MASK}", text)
    return _NAMED.sub(rf"\g<1>{MASK}", text)


def redacted_data(value: Any) -> Any:
    """Return plain JSON data with every text in it cleaned; what was clean is returned as it is."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: _cleaned_entry(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_data(inner) for inner in value]
    return value


def _cleaned_entry(key: str, value: Any) -> Any:
    return MASK if isinstance(value, str) and value and _is_secret_key(key) else redacted_data(value)


def _check_value(key: str, value: str, secrets: tuple[str, ...]) -> None:
    check_url(key, value)
    if _is_secret_key(key.rpartition(".")[2]) and not key.startswith(_NAMES_ONLY):
        why = "looks like a secret"
    elif _SHAPES.search(value):
        why = "has the form of a token"
    elif any(secret in value for secret in secrets):
        why = "holds the value of a secret of your environment"
    else:
        return
    message = f"{key} {why}, and a plan is written to disk and to MLflow. Leave it out"
    raise ConfigError(message)


def _is_secret_key(name: str) -> bool:
    return _KEY_NAME.search(_HARMLESS.sub("", name)) is not None and not _PLACE.search(name)


def _url_secret(url: str) -> str | None:
    """Return what in `url` is secret, in words."""
    if "://" not in url:
        return None
    try:
        parts = urlsplit(url)
        password, user, query = parts.password, parts.username, parse_qsl(parts.query)
    except ValueError:  # not a URL after all
        return None
    if password:
        return "a password"
    if user and parts.scheme in ("http", "https"):
        return "a user name or token"
    if any(_QUERY_NAME.match(name) for name, _ in query):
        return "a signature or token"
    return None


def _own_secrets() -> tuple[str, ...]:
    """Return the values of this process's own secret variables, longest first."""
    values = {os.environ[name] for name in os.environ if _is_secret_variable(name)}
    return tuple(sorted((v for v in values if len(v) >= SHORTEST), key=lambda v: (-len(v), v)))


@functools.cache
def _is_secret_variable(name: str) -> bool:
    return _ENV_NAME.search(_HARMLESS.sub("", name)) is not None and not _PLACE.search(name)


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str) and value:
        yield key, value
