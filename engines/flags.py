"""`engine.flags` as words of an engine's command line.

Each adapter has a table of what its engine knows, so that a slip of the keyboard is an error of the plan and
not of an engine start.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from engines.errors import EngineConfigError
from engines.nearest import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagTable:
    """The flags of one engine, written as on its command line but with underscores."""

    engine: str
    """Name of the engine in messages."""
    switches: Collection[str]
    """Flags without a value."""
    values: Collection[str]
    """Flags with a value."""
    owned: Mapping[str, str]
    """Flags that other keys of ours set -> those keys."""
    pinned: Mapping[str, str]
    """Flags that are fixed -> the reason."""
    examples: str
    """Some of its flags, for the message about an unknown one."""
    negated: bool = False
    """Whether a switch is turned off by `--no-...`; else by leaving it out."""

    def words(self, flags: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the command-line words of `flags`, in the order of their names.

        Raises:
            EngineConfigError: an unknown, owned or pinned flag, or a value of the wrong kind; names the key.
        """
        return tuple(word for name, value in sorted(flags.items()) for word in self._words(name, value))

    def _words(self, name: str, value: Any) -> list[str]:
        option = "--" + name.replace("_", "-")
        if name in self.switches:
            return self._switch(name, option, value)
        if name in self.values:
            return self._value(name, option, value)
        if name in self.owned:
            message = f"engine.flags.{name} is set by {self.owned[name]}; use that key instead"
            raise EngineConfigError(message)
        if name in self.pinned:
            message = f"engine.flags.{name} cannot be changed: {self.pinned[name]}; remove it"
            raise EngineConfigError(message)
        guess = did_you_mean(name, [*self.switches, *self.values, *self.owned])
        message = (
            f"engine.flags.{name} is no flag of {self.engine} that this adapter knows{guess}; write the "
            f"engine's own flag with underscores ({self.examples}, ...), or remove it"
        )
        raise EngineConfigError(message)

    def _switch(self, name: str, option: str, value: Any) -> list[str]:
        if not isinstance(value, bool):
            message = (
                f"engine.flags.{name} is {value!r}; it is a switch of {self.engine}: choose true or false"
            )
            raise EngineConfigError(message)
        if value:
            return [option]
        return ["--no-" + option.removeprefix("--")] if self.negated else []

    def _value(self, name: str, option: str, value: Any) -> list[str]:
        if value is None or isinstance(value, bool):
            message = f"engine.flags.{name} is {value!r}; {self.engine}'s {option} takes a value: give one"
            raise EngineConfigError(message)
        if isinstance(value, Mapping):
            return [option, json.dumps(value, sort_keys=True)]
        if isinstance(value, list | tuple):
            return [option, *map(str, value)]
        return [option, str(value)]
