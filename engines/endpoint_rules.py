"""Rules with reasons for servers that somebody else runs."""

from engines.base import Rule
from engines.endpoint_settings import settings_of
from engines.errors import EngineConfigError, EngineEnvironmentError
from engines.headers import header_values
from engines.spec import PINNED_ROUTING, EngineConfig

DEVICES = ("remote", "emulated")


def _device(config: EngineConfig) -> str | None:
    if config.device not in DEVICES:
        return (
            f"engine.device is {config.device!r}; the devices of an endpoint are somebody else's: choose "
            "'remote', or 'emulated' where an emulator serves it"
        )
    return None


def _settings(config: EngineConfig) -> str | None:
    try:
        settings_of(config.flags).urls_of(config)
    except EngineConfigError as error:
        return error.message
    return None


def _headers(config: EngineConfig) -> str | None:
    try:
        header_values(settings_of(config.flags).headers)
    except EngineConfigError:
        return None  # the settings say so already
    except EngineEnvironmentError as error:
        return error.message
    return None


def _not_ours(config: EngineConfig) -> str | None:
    given = [
        *(["engine.python"] if config.python is not None else []),
        *(f"engine.env.{name}" for name in config.env),
        *(f"cache.{name}" for name in config.cache.given),
        *(f"decode.{name}" for name in config.decode.given),
    ]
    if given:
        return (
            f"{given[0]} cannot be set for a server that somebody else runs; remove it, and let them set up "
            "a server of its own for every value that is compared"
        )
    return None


def _stateful(config: EngineConfig) -> str | None:
    if config.drafter.stateful:
        return (
            f"the drafter {config.drafter.method!r} remembers, so every cell needs a fresh engine, and "
            "nobody here can restart an endpoint; measure it on an engine of your own"
        )
    return None


def _routing(config: EngineConfig) -> str | None:
    if config.layout.routing == PINNED_ROUTING:
        return (
            "whether an endpoint keeps a conversation on the data-parallel rank that is asked for cannot be "
            "told; set layout.routing=engine"
        )
    return None


ENDPOINT_RULES: tuple[Rule, ...] = (
    Rule(name="endpoint_device", meaning="Its devices are not of this cluster.", check=_device),
    Rule(
        name="endpoint_settings",
        meaning="Every arm has a server of its own, at an address.",
        check=_settings,
    ),
    Rule(
        name="endpoint_headers",
        meaning="The variables that hold its headers are set.",
        check=_headers,
    ),
    Rule(
        name="endpoint_not_ours",
        meaning="What its owner decides is not set here.",
        check=_not_ours,
    ),
    Rule(
        name="endpoint_stateful",
        meaning="A drafter that remembers needs engines that can be restarted.",
        check=_stateful,
    ),
    Rule(
        name="endpoint_routing",
        meaning="Conversations are not pinned to ranks that cannot be seen.",
        check=_routing,
    ),
)
"""Rules of servers that somebody else runs."""
