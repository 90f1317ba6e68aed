"""What `engine.flags` may say of servers that somebody else runs: where they are, which headers they want.

`urls` maps an arm to its server: the arm's label (`tp2/eagle3-k3`) or its drafter's (`eagle3-k3`, `none`) to
a URL, or to a list of URLs of equal servers where a block's slice holds several of them. `headers` maps an
HTTP header to the name of the environment variable with its value. `ca_file` is the authority of their
certificates.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from engines.errors import EngineConfigError
from engines.nearest import did_you_mean
from engines.spec import EngineConfig

KNOWN = ("ca_file", "headers", "urls")
_HEADER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|API_?KEY|CREDENTIAL")
"""What makes a variable's name that of a secret: its value is blanked wherever a sweep would write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """`engine.flags` of an endpoint, checked."""

    urls: Mapping[str, tuple[str, ...]]
    """Label of an arm or of a drafter -> its servers, without a slash at the end."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """HTTP header -> environment variable with its value."""
    ca_file: str | None = None

    def urls_of(self, config: EngineConfig) -> tuple[str, ...]:
        """Return the servers of an arm.

        Raises:
            EngineConfigError: there is none; the message names the key.
        """
        for label in (config.label, config.drafter.label):
            if label in self.urls:
                return self.urls[label]
        known = ", ".join(sorted(self.urls)) or "nothing"
        message = (
            f"engine.flags.urls has no server of {config.label} (it has {known}); add "
            f"'+engine.flags.urls={{{config.drafter.label}: URL}}', or the key {config.label!r} for this "
            "layout alone"
        )
        raise EngineConfigError(message)


def settings_of(flags: Mapping[str, Any]) -> EndpointSettings:
    """Return the checked settings.

    Raises:
        EngineConfigError: an unknown key, an address that is none, one server for two arms, or a header
            without a variable. The message never holds a header's value.
    """
    for name in sorted(flags):
        if name not in KNOWN:
            message = (
                f"engine.flags.{name}{did_you_mean(name, KNOWN)} is no setting of an endpoint, whose server "
                f"is set up by who runs it; known are {', '.join(KNOWN)}"
            )
            raise EngineConfigError(message)
    urls = {str(arm): _urls(str(arm), value) for arm, value in _map(flags, "urls").items()}
    _check_apart(urls)
    headers = {str(name): _variable(str(name), value) for name, value in _map(flags, "headers").items()}
    ca_file = flags.get("ca_file")
    return EndpointSettings(urls=urls, headers=headers, ca_file=None if ca_file is None else str(ca_file))


def _map(flags: Mapping[str, Any], name: str) -> Mapping[Any, Any]:
    value = flags.get(name) or {}
    if not isinstance(value, Mapping):
        message = f"engine.flags.{name} is no map; write '+engine.flags.{name}={{KEY: VALUE}}'"
        raise EngineConfigError(message)
    return value


def _urls(arm: str, value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list | tuple) else [value]
    found = []
    for url in listed:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"engine.flags.urls.{arm} is {url!r}; write http://HOST:PORT or https://HOST"
            raise EngineConfigError(message)
        if parts.query or parts.fragment or parts.username:
            message = (
                f"engine.flags.urls.{arm} holds more than an address; tokens go into engine.flags.headers"
            )
            raise EngineConfigError(message)
        found.append(url.rstrip("/"))
    if not found:
        message = f"engine.flags.urls.{arm} lists no server; give one, or remove the key"
        raise EngineConfigError(message)
    return tuple(found)


def _check_apart(urls: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse one server for two arms: the same engine cannot be both."""
    owners: dict[str, str] = {}
    for arm, listed in urls.items():
        for url in listed:
            if url in owners:
                message = (
                    f"engine.flags.urls has {url} twice, for {owners[url]} and for {arm}: a server is one "
                    "arm, and one of its replicas"
                )
                raise EngineConfigError(message)
            owners[url] = arm


def _variable(header: str, value: Any) -> str:
    if not _HEADER.fullmatch(header):
        message = f"engine.flags.headers has {header!r}, which is no name of an HTTP header"
        raise EngineConfigError(message)
    if not (isinstance(value, str) and _VARIABLE.fullmatch(value) and _SECRET.search(value)):
        message = (
            f"engine.flags.headers.{header} has to be the name of an environment variable, never a value: "
            "capitals, with TOKEN, SECRET, PASSWORD, API_KEY or CREDENTIAL in it, so that its value is "
            "blanked wherever it might turn up"
        )
        raise EngineConfigError(message)
    return value
