"""Writing a text file whole: a reader never sees half of one."""

from pathlib import Path


def write_whole(file: Path, text: str) -> Path:
    """Write a file and return its path; a pipe or a device is written to, never replaced.

    Raises:
        OSError: it cannot be written.
    """
    if file.exists() and not file.is_file():
        file.write_text(text, encoding="utf-8")
        return file
    part = file.with_name(f".{file.name}.part")
    part.write_text(text, encoding="utf-8")
    return part.replace(file)
