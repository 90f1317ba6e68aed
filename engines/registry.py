"""The table of engines: a new engine is its own module and one line here."""

from engines.base import Engine
from engines.emulator.adapter import EmulatorEngine
from engines.endpoint import EndpointEngine
from engines.errors import EngineConfigError
from engines.nearest import did_you_mean
from engines.sglang import SglangEngine
from engines.trtllm import TrtllmEngine
from engines.vllm import VllmEngine

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (VllmEngine(), SglangEngine(), TrtllmEngine(), EndpointEngine(), EmulatorEngine())
}


def engine_named(name: str) -> Engine:
    """Return the adapter called `name`.

    Raises:
        EngineConfigError: there is no such engine.
    """
    if name not in ENGINES:
        guess = did_you_mean(name, ENGINES)
        message = f"engine.name is {name!r}{guess}; known engines: {', '.join(sorted(ENGINES))}"
        raise EngineConfigError(message)
    return ENGINES[name]
