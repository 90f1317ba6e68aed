"""Errors of the engines room.

* EngineError
  x EngineEnvironmentError    the interpreter or package is missing: the user can fix it
  x EngineConfigError         a setting the adapter does not know or cannot express: the user can fix it
  x EngineStartError          it never became ready
    - EngineMemoryError       not enough device or host memory at this layout: a finding, never retried
    - BadFlagError            its own argument parser refused the command line
    - MissingModelError       it did not find or could not read the model
    - PortInUseError          another process took the port
    - StartTimeoutError       still not ready at the deadline
    - WrongServerError        somebody else answers on the port
  x EngineDiedError           it ended while it was being measured
    - EngineOutOfMemoryError  for want of memory: a finding about capacity at this load, never retried
  x EngineHungError           it lives but has produced no token for a stated time

All carry `cause` (a stable word for tables), the engine's log tail, and pickle across Ray.
"""


class EngineError(Exception):
    """Base of all; `retryable` says whether trying the same thing again can help."""

    cause = "engine"
    retryable = False

    def __init__(self, message: str, log_tail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.log_tail = log_tail

    def __reduce__(self) -> tuple[type["EngineError"], tuple[str, str]]:
        return type(self), (self.message, self.log_tail)


class EngineEnvironmentError(EngineError, ValueError):
    """The engine's interpreter or package is missing or unusable."""

    cause = "environment"


class EngineConfigError(EngineError, ValueError):
    """A setting the adapter does not know or the engine cannot express."""

    cause = "config"


class EngineStartError(EngineError):
    """The engine ended or stayed unready during start."""

    cause = "start"
    retryable = True


class EngineMemoryError(EngineStartError):
    """Out of device or host memory at this layout: a finding about capacity."""

    cause = "out_of_memory"
    retryable = False


class BadFlagError(EngineStartError):
    """The engine's own parser or validation refused the command line."""

    cause = "bad_flag"
    retryable = False


class MissingModelError(EngineStartError):
    """The engine could not find or read the model."""

    cause = "missing_model"
    retryable = False


class PortInUseError(EngineStartError):
    """Another process holds the port."""

    cause = "port_in_use"


class StartTimeoutError(EngineStartError):
    """Not ready at the deadline."""

    cause = "start_timeout"


class WrongServerError(EngineStartError):
    """Another server answers on the port."""

    cause = "wrong_server"


class EngineDiedError(EngineError):
    """The engine ended while it was being measured."""

    cause = "died"
    retryable = True


class EngineOutOfMemoryError(EngineDiedError):
    """The engine ran out of memory while it was being measured: a finding about capacity at this load."""

    cause = "out_of_memory"
    retryable = False


class EngineHungError(EngineError):
    """The engine produced no token for a stated time."""

    cause = "hung"
    retryable = True
