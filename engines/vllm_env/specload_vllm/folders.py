"""Model folders that appear whole or not at all."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def build_once(target: Path, build: Callable[[Path], None], *, proof: str = "config.json") -> bool:
    """Build a model folder unless it is there; return whether it was built.

    It is there when it has the file `proof`: one that earlier versions of the builder did not write, if any.
    The files are written beside the target and moved into place in one step, so an interrupted build leaves
    no half-written model behind and two builds at once do not disturb each other.
    """
    if (target / proof).is_file():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        build(scratch)
        scratch.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return True
