"""Headers that a server asks for, such as a token: only the names of the variables that hold them are known.

A value is a secret. It is read from the environment where a request is made, and nothing of ours keeps it.
"""

import os
from collections.abc import Mapping

from engines.errors import EngineEnvironmentError

BEARER = "Bearer "
"""What a value of the header `Authorization` begins with, unless it names a scheme itself."""


def header_values(variables: Mapping[str, str]) -> dict[str, str]:
    """Return each header with its value, read from the environment variable that holds it.

    Raises:
        EngineEnvironmentError: a variable is not set, or its value cannot be a header; names the header only,
            as who took a value for a name would find it in every log.
    """
    found = {}
    for header, variable in variables.items():
        value = os.environ.get(variable, "").strip()
        if not value:
            message = (
                f"engine.flags.headers.{header} names an environment variable that is not set here; set it "
                "where the sweep is started"
            )
            raise EngineEnvironmentError(message)
        if not (value.isascii() and value.isprintable()):
            message = f"the variable that engine.flags.headers.{header} names holds no value of a header"
            raise EngineEnvironmentError(message)
        scheme = header.lower() == "authorization" and " " not in value
        found[header] = f"{BEARER}{value}" if scheme else value
    return found
