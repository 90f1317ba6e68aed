"""The command line that serves an arm, as it was measured or as its adapter writes it, for another machine.

What belongs to the machine or the moment of the measurement is replaced by placeholders: the interpreter,
model folders, host, port and working folder. Devices and cores are left out, as are variables that every
process of a machine has, and the ones that only a measurement needs.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines.base import Command, Site
from engines.registry import engine_named
from engines.spec import EngineConfig
from engines.surroundings import FIXED, INHERITED, OWNED
from jobs.result import MEASURED, CellResult
from orchestrator.secrecy import redacted_data

_PORT = 65_535
_FOLDER = "/specload-working-folder"
_MEASURING = {"VLLM_SERVER_DEV_MODE", "VLLM_CPU_OMP_THREADS_BIND"}
"""Variables that let a measurement empty the cache, or bind cores of its machine."""
_PLACES = {
    "PYTHON": "interpreter of the engine's environment",
    "MODEL": "folder of the model",
    "DRAFT_MODEL": "folder of the draft model",
    "HOST": "address to listen on",
    "PORT": "port to listen on",
    "FOLDER": "a working folder",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What to execute."""

    label: str
    """Of the arm."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of the machine."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Text files to write into FOLDER, by name."""
    measured: str = ""
    """Run that the command is of; empty where nobody has run it yet."""

    @property
    def placeholders(self) -> dict[str, str]:
        """Words to replace, with what they stand for."""
        text = " ".join((*self.argv, *self.env.values(), *self.files.values()))
        return {name: meaning for name, meaning in _PLACES.items() if f"${name}" in text}

    @property
    def line(self) -> str:
        """The command as one line for a shell, placeholders as variables."""
        words = [f"{name}={_quoted(value)}" for name, value in sorted(self.env.items())]
        return " ".join([*words, *(_quoted(word) for word in self.argv)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "label": self.label,
            "argv": list(self.argv),
            "env": dict(self.env),
            "files": dict(self.files),
            "placeholders": self.placeholders,
            "measured": self.measured,
        }


def _quoted(word: str) -> str:
    """Quote a word for a shell, leaving placeholders to it."""
    if "$" in word:
        return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`") + '"'
    return shlex.quote(word)


def recorded(directory: Path, results: Sequence[CellResult], config: EngineConfig) -> Deployment | None:
    """Return the command that a measured cell of an arm was served by; None where no record of it is left.

    Args:
        directory: of the sweep.
        results: its cells.
        config: the arm's configuration.
    """
    for result in results:
        run = result.identity.get("run")
        if result.arm != config.digest or result.outcome != MEASURED or not run:
            continue
        path = directory / "engines" / str(run) / "r0-command.json"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            site = record["site"]
            command = Command(
                argv=tuple(record["argv"]),
                env=record["env"],
                cwd=Path(site["directory"]),
                files=record.get("files", {}),
            )
            place = (str(site["port"]), str(site["directory"]), str(site["host"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return _deployment(config, command, place, measured=str(run))
    return None


def written(config: EngineConfig) -> Deployment:
    """Return the command that the adapter writes for a configuration that nobody has run yet.

    Raises:
        EngineConfigError: a setting that the adapter does not know.
    """
    site = Site(port=_PORT, directory=Path(_FOLDER))
    command = engine_named(config.engine).command(config, site)
    return _deployment(config, command, (str(_PORT), _FOLDER, site.host), measured="")


def _deployment(
    config: EngineConfig, command: Command, place: tuple[str, str, str], *, measured: str
) -> Deployment:
    port, folder, host = place
    swaps = {folder: "$FOLDER"}
    models = (
        (config.model.path, config.model.digest, "$MODEL"),
        (config.drafter.model, config.drafter.model_digest, "$DRAFT_MODEL"),
    )
    for path, digest, name in models:
        if path and (digest is not None or Path(path).is_absolute()):  # a hub name is the same anywhere
            swaps |= {path: name, str(Path(path).absolute()): name}
    longest_first = sorted(swaps.items(), key=lambda pair: -len(pair[0]))  # one may begin another

    def moved(word: str) -> str:
        if word == port:
            return "$PORT"
        if word == host:
            return "$HOST"
        for path, name in longest_first:
            word = word.replace(path, name)
        return word

    dropped = {*INHERITED, *FIXED, *OWNED, *_MEASURING, "PATH", "PYTHONPATH"}
    env = {name: value for name, value in command.env.items() if name not in dropped}
    clean = redacted_data({"argv": [moved(word) for word in command.argv[1:]], "env": env})
    return Deployment(
        label=config.label,
        argv=("$PYTHON", *clean["argv"]),
        env={name: moved(value) for name, value in clean["env"].items()},
        files=redacted_data({name: moved(text) for name, text in command.files.items()}),
        measured=measured,
    )
