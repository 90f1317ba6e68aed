"""Model folders: where they are, and the digest that tells one from another."""

import hashlib
from pathlib import Path

from engines.digest import digest
from engines.spec import Model
from orchestrator.errors import ConfigError

_WHOLE = 16 * 2**20
_EDGE = 2**20


def resolve_model(name: str, path: str | None, max_context: int) -> Model:
    """Return the target model with its folder made absolute and its digest.

    Raises:
        ConfigError: the folder is missing or has no `config.json`.
    """
    if path is None:
        return Model(name=name, path=None, max_context=max_context, digest=None)
    folder = model_folder(path, key="model.path")
    return Model(name=name, path=str(folder), max_context=max_context, digest=folder_digest(folder))


def model_folder(path: str, *, key: str) -> Path:
    """Return the absolute folder at `path`.

    Raises:
        ConfigError: there is none, or it has no `config.json`; the message names `key` and what to do.
    """
    folder = Path(path).expanduser().resolve()
    if not folder.is_dir():
        message = (
            f"{key} is {path!r}, and there is no such folder. `make models` builds the small models; a model "
            "of the hub is fetched with `hf download NAME --local-dir FOLDER`, and its folder given as the "
            "path"
        )
        raise ConfigError(message)
    if not (folder / "config.json").is_file():
        message = (
            f"the model folder {folder} ({key}) has no config.json, so it is no model that an engine could "
            "load; name the folder that holds config.json, tokenizer.json and the weights"
        )
        raise ConfigError(message)
    return folder


def folder_digest(folder: Path) -> str:
    """Return SHA-256 over the names, sizes and contents of a model folder's files.

    Files above 16 MiB count with their size and their first and last MiB: reading 100 GB of weights to name
    them would cost more than it proves.
    """
    entries = [
        [str(path.relative_to(folder)), path.stat().st_size, _content(path)]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return digest(entries)


def _content(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as stream:
        if size <= _WHOLE:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        total = hashlib.sha256(stream.read(_EDGE))
        stream.seek(size - _EDGE)
        total.update(stream.read(_EDGE))
    return total.hexdigest()
