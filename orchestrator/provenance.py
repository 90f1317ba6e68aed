"""Provenance: with what, and on what, a sweep was run.

Never a secret: no environment variables, no URLs, no user names. Every probe can fail on its own; what could
not be found out is absent or null, and stops nothing.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

import psutil

from jobs.gpus import list_gpus
from orchestrator.durable import replace_json

FILE = "provenance.json"
_ROOT = Path(__file__).resolve().parent.parent


def fingerprint() -> dict[str, Any]:
    """Return what identifies this program, its environment and this machine, as plain JSON."""
    return {
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "specload": version("specload"),
        "checkout": checkout(_ROOT),
        "python": {"version": platform.python_version(), "implementation": sys.implementation.name},
        "packages": packages(),
        "host": host(),
        "gpus": list_gpus(),
    }


def write_provenance(directory: Path) -> Path:
    """Add this run's fingerprint to those in a sweep's folder, and return the file."""
    path = directory / FILE
    runs: list[Any] = []
    if path.exists():
        with suppress(ValueError, KeyError, TypeError):  # a damaged record of the past must not stop a sweep
            runs = list(json.loads(path.read_text())["runs"])
    replace_json(path, {"runs": [*runs, fingerprint()]})
    return path


def checkout(folder: Path) -> dict[str, Any] | None:
    """Return commit and state of the git checkout at `folder`; None where there is none."""
    commit = _git(folder, ["rev-parse", "HEAD"])
    if commit is None:
        return None
    changes = _git(folder, ["diff", "HEAD", "--no-ext-diff"]) or ""
    found = {"commit": commit, "modified": bool(changes)}
    if changes:
        found["changes_digest"] = hashlib.sha256(changes.encode()).hexdigest()
    return found


def packages() -> dict[str, str]:
    """Return every installed distribution with its version."""
    found = {dist.metadata["Name"]: dist.version for dist in distributions() if dist.metadata["Name"]}
    return dict(sorted(found.items(), key=lambda entry: entry[0].lower()))


def host() -> dict[str, Any]:
    """Return this machine's name, kernel, processor and memory."""
    return {
        "name": platform.node(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def _processor() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return None


def _git(folder: Path, arguments: Sequence[str]) -> str | None:
    if not (folder / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
