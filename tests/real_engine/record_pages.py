"""Record the metrics pages that the parsers are tested on, from a real vLLM on this machine's CPU.

    python -m tests.real_engine.record_pages

Two data-parallel ranks and a draft model; a page before the first request, and one after eight of them. What
is left out: buckets of histograms but the last (they are most of a page, and nothing reads them), and the
families of Python's own process but for one. Everything else is as the server wrote it.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from engines.base import Site
from engines.launch import RunningEngine, start_engine
from engines.ports import lease_port
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.vllm import VllmEngine
from tests.contract.engine_contract import complete, random_prompt
from tests.real_engine.conftest import CPU_FLAGS, ROOT

PAGES = ROOT / "tests" / "engines" / "pages"
KEPT = ("# HELP vllm:", "# TYPE vllm:", "vllm:", "# HELP python_info", "# TYPE python_info", "python_info")
REQUESTS = 8
TOKENS = 48


def recorded() -> EngineConfig:
    """Return the engine whose pages are recorded."""
    models = ROOT / ".cache" / "models" / "tiny"
    python = str(ROOT / ".venv-vllm" / "bin" / "python")
    return EngineConfig(
        engine="vllm",
        version=VllmEngine().version(python),
        model=Model(name="tiny", path=str(models / "target"), max_context=2048),
        drafter=Drafter(method="draft_model", k=3, model=str(models / "draft60")),
        layout=Layout(dp=2),
        python=python,
        device="cpu",
        flags=CPU_FLAGS,
    )


def trimmed(page: str) -> str:
    """Return what is kept of a page."""
    return "\n".join(_kept(page)) + "\n"


def _kept(page: str) -> Iterator[str]:
    for line in page.splitlines():
        bucket = line.partition("{")[0].endswith("_bucket") and 'le="+Inf"' not in line
        if line.startswith(KEPT) and not bucket:
            yield line


def load(running: RunningEngine) -> None:
    """Send eight requests, every second one with a prompt that came before."""
    prompts = [random_prompt(4000, 90, seed // 2) for seed in range(REQUESTS)]
    for half in (prompts[::2], prompts[1::2]):
        with ThreadPoolExecutor(len(half)) as threads:
            list(threads.map(lambda prompt: complete(running, prompt, tokens=TOKENS), half))


def main() -> int:
    """Record both pages."""
    config, engine = recorded(), VllmEngine()
    with tempfile.TemporaryDirectory() as folder, lease_port() as lease:
        site = Site(port=lease.port, directory=Path(folder))
        with start_engine(engine, config, site, ready_seconds=300.0) as running:
            pages = []
            for step in (lambda: None, lambda: load(running)):
                step()
                time.sleep(2.0)  # counts may follow an answer
                pages.append(httpx.get(f"{running.server.url}/metrics", trust_env=False).text)
    PAGES.mkdir(exist_ok=True)
    version = config.version.partition("+")[0]
    for moment, page in zip(("before", "after"), pages, strict=True):
        path = PAGES / f"vllm-{version}-dp2-draft-model-{moment}.txt"
        path.write_text(trimmed(page))
        sys.stdout.write(f"{path.relative_to(ROOT)}: {len(page)} bytes, {path.stat().st_size} kept\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
