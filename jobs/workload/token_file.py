"""The token workload as a file, and its digest. Light: the load process reads with this module."""

from pathlib import Path

import msgspec

from engines.digest import digest
from jobs.errors import WorkloadError
from jobs.workload.tokens import TokenWorkload


def digest_of(workload: TokenWorkload) -> str:
    """Return SHA-256 over what is sent: ids, token ids, output lengths, tokenizer and validity."""
    content = {
        "conversations": [
            [
                conversation.id,
                [[turn.keep, list(turn.suffix), turn.output_tokens] for turn in conversation.turns],
            ]
            for conversation in workload.conversations
        ],
        "tokenizer": workload.tokenizer,
        "validity": workload.validity,
    }
    return digest(content)


def write(workload: TokenWorkload, path: str | Path) -> None:
    """Write `workload` as compact JSON."""
    Path(path).write_bytes(msgspec.json.encode(workload))


def read(path: str | Path) -> TokenWorkload:
    """Read what `write` wrote.

    Raises:
        WorkloadError: the file is missing or no token workload.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=TokenWorkload)
    except FileNotFoundError:
        message = f"token workload {path} does not exist"
        raise WorkloadError(message) from None
    except msgspec.DecodeError as error:
        message = f"token workload {path} is damaged ({error}); plan the sweep again"
        raise WorkloadError(message) from error
