"""vLLM with its torch profiler at hand: a run of its own, whose throughput is never quoted.

Checked against vLLM 0.32. The profiler slows every step down, and its routes exist only where it was asked
for on the command line, so an engine that is measured never has it.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import httpx

from engines.base import Command, Site
from engines.errors import EngineError
from engines.spec import EngineConfig
from engines.vllm import VllmEngine
from engines.vllm_http import control_client

SCOPES = "VLLM_CUSTOM_SCOPES_FOR_PROFILING"
"""Variable that makes the V1 model runner name its parts in the trace; the V2 runner has no such names."""
SUFFIX = ".pt.trace.json.gz"
WRITE_SECONDS = 300.0
"""Longest wait for a worker that writes its trace."""


class ProfiledVllm(VllmEngine):
    """vLLM whose workers can be traced.

    Args:
        traces: folder for the traces; absolute.
    """

    def __init__(self, traces: Path) -> None:
        self.traces = traces

    def command(self, config: EngineConfig, site: Site) -> Command:
        """Return the arm's own command line and environment, with the profiler's settings added."""
        command = super().command(config, site)
        settings = {
            "profiler": "torch",
            "torch_profiler_dir": str(self.traces),
            # stacks would multiply the size of a trace and what it costs to record; the front end decodes
            # nothing, and counts no steps
            "torch_profiler_with_stack": False,
            "ignore_frontend": True,
        }
        words = (*command.argv, "--profiler-config", json.dumps(settings, sort_keys=True))
        return replace(command, argv=words, env={**command.env, SCOPES: "1"})

    def start_trace(self, url: str, *, steps: int) -> None:
        """Have every worker record its next `steps` steps.

        Raises:
            EngineError: the server refused, or did not answer.
        """
        _post(f"{url}/start_profile", json.dumps({"max_iterations": steps}))

    def stop_trace(self, url: str) -> tuple[Path, ...]:
        """End the recording, wait until every worker has written its trace, and return the files.

        Raises:
            EngineError: the server refused, did not answer, or wrote nothing.
        """
        _post(f"{url}/stop_profile", "")
        found = tuple(sorted(self.traces.glob(f"*{SUFFIX}"), key=os.path.getmtime))
        if not found:
            message = f"the profiler of {url} wrote no trace into {self.traces}"
            raise EngineError(message)
        return found


def _post(url: str, body: str) -> None:
    timeout = httpx.Timeout(WRITE_SECONDS, connect=5.0)
    try:
        with control_client() as client:
            answer = client.post(
                url, content=body, headers={"Content-Type": "application/json"}, timeout=timeout
            )
    except httpx.HTTPError as error:
        message = f"{url} did not answer: {error or type(error).__name__}"
        raise EngineError(message) from error
    if answer.is_error:
        message = f"{url} was refused with HTTP status {answer.status_code}: {answer.text[:300]}"
        raise EngineError(message)
