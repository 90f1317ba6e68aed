"""What the adapters check alike of a drafter against the table of methods that their engine runs."""

from collections.abc import Mapping
from typing import Protocol, TypeVar

from engines.errors import EngineConfigError
from engines.nearest import did_you_mean
from engines.spec import Drafter


class DrafterMethod(Protocol):
    """How an engine knows one drafter method."""

    @property
    def options(self) -> frozenset[str]:
        """Keys of `drafter.options` it takes, beside the ones of every method."""

    @property
    def needs_model(self) -> bool:
        """Whether `drafter.model` has to name a checkpoint."""

    @property
    def takes_model(self) -> bool:
        """Whether `drafter.model` may name one."""


M = TypeVar("M", bound=DrafterMethod)


def known_method(
    methods: Mapping[str, M], drafter: Drafter, *, engine: str, common: frozenset[str] = frozenset()
) -> M:
    """Return how `engine` knows the drafter's method; `common` are options that all its methods take.

    Raises:
        EngineConfigError: an unknown method or option, or a model where the method has none.
    """
    method = methods.get(drafter.method)
    if method is None:
        guess = did_you_mean(drafter.method, methods)
        runs = ", ".join(sorted(methods))
        message = f"drafter.method is {drafter.method!r}{guess}; {engine} runs {runs} and none"
        raise EngineConfigError(message)
    known = method.options | common
    for key in sorted(drafter.options):
        if key not in known:
            message = (
                f"drafter.options.{key} is no setting of {drafter.method!r} in {engine}"
                f"{did_you_mean(key, known)}; it takes {', '.join(sorted(known))}"
            )
            raise EngineConfigError(message)
    if drafter.model is not None and not method.takes_model:
        message = f"drafter.model is set, but the drafter {drafter.method!r} has no model; remove it"
        raise EngineConfigError(message)
    return method


def missing_model(methods: Mapping[str, M], drafter: Drafter) -> str | None:
    """Return the reason against a drafter that needs a checkpoint and has none; None where all is well."""
    method = methods.get(drafter.method)
    if method is not None and method.needs_model and drafter.model is None:
        return f"the drafter {drafter.method!r} needs a model; set drafter.model"
    return None
