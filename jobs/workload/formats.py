"""The table of workload formats: a new format is its own module and one line here."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.builtin import BUILTIN
from jobs.workload.chat_jsonl import read_chat_jsonl
from jobs.workload.conversation import RECORDED, Conversation, Workload
from jobs.workload.swe_agent import read_swe_agent

FORMATS: dict[str, Callable[[Sequence[Path]], Iterable[Conversation]]] = {
    **BUILTIN,
    "chat_jsonl": read_chat_jsonl,
    "swe_agent": read_swe_agent,
}
"""Format -> function that reads files into conversations."""


def load_workload(
    *,
    name: str,
    format: str,  # noqa: A002  the key's name in the configuration
    paths: Sequence[str | Path],
    root: str | Path | None = None,
) -> Workload:
    """Read a workload.

    Args:
        name: Name of the workload in results.
        format: A key of `FORMATS`.
        paths: Files or glob patterns, relative to `root`; the files of a pattern are read in sorted order.
        root: Folder of relative paths; None for the working directory.

    Raises:
        WorkloadError: unknown format, a pattern without a file, a damaged file, or an id used twice.
    """
    if format not in FORMATS:
        message = f"workload.format is {format!r}; known formats: {', '.join(FORMATS)}"
        raise WorkloadError(message)
    files = _files(paths, Path(root) if root is not None else Path())
    if not files and format not in BUILTIN:
        message = f"workload.paths is empty; the format {format!r} reads files: set workload.paths=[FILE,...]"
        raise WorkloadError(message)
    conversations = tuple(FORMATS[format](files))
    _check_ids(conversations)
    return Workload(name=name, conversations=conversations, validity=RECORDED)


def _files(paths: Sequence[str | Path], root: Path) -> list[Path]:
    files: list[Path] = []
    for entry in paths:
        path = root / Path(entry).expanduser()
        # A file whose name holds glob characters is that file, not a pattern.
        found = [path] if path.is_file() else _expand(path)
        if not found:
            if path.is_dir():
                problem = "this is a folder: name its files, for instance with /*.jsonl"
            elif _is_pattern(path):
                problem = "no file matches this pattern"
            else:
                problem = "this file does not exist"
            message = f"workload.paths has {str(entry)!r}: {problem} (looked for {path.absolute()})"
            raise WorkloadError(message)
        files.extend(found)
    return files


def _expand(path: Path) -> list[Path]:
    """Return the files that a pattern matches, sorted; nothing for a plain path."""
    parts = path.absolute().parts
    first = next((i for i, part in enumerate(parts) if _is_pattern(part)), None)
    if first is None:
        return []
    found = Path(*parts[:first]).glob(str(Path(*parts[first:])))
    return sorted(file for file in found if file.is_file())


def _is_pattern(text: str | Path) -> bool:
    return any(character in str(text) for character in "*?[")


def _check_ids(conversations: Sequence[Conversation]) -> None:
    seen: set[str] = set()
    for conversation in conversations:
        if conversation.id in seen:
            message = (
                f"the conversation id {conversation.id!r} is used twice in this workload; ids name the same "
                "conversation in every arm: make them unique"
            )
            raise WorkloadError(message)
        seen.add(conversation.id)
