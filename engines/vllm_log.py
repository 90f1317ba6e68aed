"""What a vLLM log says about why the engine ended."""

import re

CAUSES: tuple[tuple[str, str], ...] = (
    # Order matters: the specific line stands above the general traceback that follows it.
    (r"address already in use|errno 98\b", "port_in_use"),
    (
        r"out of memory|outofmemoryerror|no available memory for the cache blocks|cannot allocate memory|\bMemoryError\b"
        r"|larger than the (?:available|maximum).{0,80}kv cache|kv cache is needed, which is larger"
        r"|not enough memory|less than desired (?:gpu|cpu|device) memory|free memory on device",
        "out_of_memory",
    ),
    (r"unrecognized arguments|error: argument |: error: |invalid choice", "bad_flag"),
    (
        r"no such file or directory: '[^']*(?:config\.json|safetensors)|repository not found|is not a local folder"
        r"|invalid repository id|repo id must|cannot find any model weights|no model weights"
        r"|can't load (?:the configuration|tokenizer)|safetensorerror|offline mode is enabled|localentrynotfounderror",
        "missing_model",
    ),
    (r"validation error for|\bvalueerror: .*(?:must be|should be|not supported|divisible)", "bad_flag"),
)
"""(pattern, cause) in order of precedence; matched without case over the log's tail."""

_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), cause) for pattern, cause in CAUSES)
KILLED = -9


def cause_of(log_tail: str, returncode: int | None) -> str:
    """Return the cause word of `engines/errors.py` that the log shows.

    A process ended by SIGKILL without a word of its own is `out_of_memory` only where the log says so: the
    kernel and an operator use the same signal.
    """
    for pattern, cause in _COMPILED:
        if pattern.search(log_tail):
            return cause
    return "died" if returncode is not None else "engine"
