"""What a vLLM log says about why the engine ended."""

import re

CAUSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Order matters: a specific line stands above the general traceback that follows from it.
    ("port_in_use", (r"address already in use", r"errno 98\b")),
    (
        "out_of_memory",
        (
            r"out of memory",
            r"OutOfMemoryError",
            r"cannot allocate memory",
            r"\bMemoryError\b",
            r"no available memory for the cache blocks",
            r"kv cache is needed, which is larger than the available kv cache memory",
            r"free memory on device .* is less than desired",
            r"not enough .*memory",
        ),
    ),
    (
        "missing_model",
        (
            r"no such file or directory: '[^']*(?:config\.json|\.safetensors)",
            r"repository not found",
            r"invalid repository id",
            r"repo id must",
            r"cannot find any model weights",
            r"can't load the (?:configuration|tokenizer)",
            r"can't load tokenizer",
            r"SafetensorError",
            r"LocalEntryNotFoundError",
            r"offline mode is enabled",
            r"does not appear to have a file named",
        ),
    ),
    (
        "bad_flag",
        (
            r"unrecognized arguments",
            r"error: argument ",
            r"invalid choice",
            r"validation errors? for ",
            r"ValueError: .*(?:must be|should be|not supported|divisible|is required)",
        ),
    ),
)
"""(cause, patterns) in order of precedence; matched without case over the log's tail."""

_COMPILED = tuple((cause, re.compile("|".join(patterns), re.IGNORECASE)) for cause, patterns in CAUSES)


def cause_of(log_tail: str, returncode: int | None) -> str:
    """Return the cause word of `engines/errors.py` that the log shows.

    A process ended by SIGKILL is out of memory only where the log says so: the kernel and an operator use the
    same signal.
    """
    for cause, pattern in _COMPILED:
        if pattern.search(log_tail):
            return cause
    return "engine" if returncode is None else "died"
