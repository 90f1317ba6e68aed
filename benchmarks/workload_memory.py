"""Peak memory of importing and binding a large trace, as a ratio to the size of its file.

    python benchmarks/workload_memory.py                    # a Mooncake-like trace of 100 MB
    python benchmarks/workload_memory.py --megabytes 20 --keep /tmp/traces

Each step runs in a process of its own; its peak is that of the process, less that of one that imports the
same modules and reads nothing. Linux only. The last line is one line of JSON.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engines.emulator.tokenizer import EmulatedTokenizer
from jobs.workload.bind import DEFAULT, bind
from jobs.workload.formats import load_workload
from jobs.workload.ideal import ideal_cached
from jobs.workload.mooncake import BLOCK
from jobs.workload.policies import Policies
from jobs.workload.source import FileSource
from jobs.workload.token_file import read, write
from jobs.workload.tokens import TokenWorkload

MIB = 2**20
CONTEXT = 131_072


def write_trace(path: Path, megabytes: float, *, seed: int = 0) -> int:
    """Write rows like those of the public Mooncake trace until the file has its size; return their number.

    Conversations share a system prompt; each turn brings the blocks before it and some of its own; ids count
    up as blocks first appear; about 24 blocks a prompt.
    """
    draw = random.Random(seed)
    fresh = 1
    live: list[list[int]] = []
    rows = size = 0
    with path.open("w") as file:
        while size < megabytes * 1e6:
            prompt = live.pop(draw.randrange(len(live))) if live and draw.random() < 0.4 else [0]
            new = 1 + int(draw.expovariate(1 / 17))
            prompt = [*prompt, *range(fresh, fresh + new)]
            fresh += new
            if draw.random() < 0.45 and len(prompt) < CONTEXT // BLOCK - 40:
                live.append(prompt)
            tokens = BLOCK * len(prompt) - draw.randrange(BLOCK)
            size += file.write(
                json.dumps(
                    {
                        "timestamp": 300 * rows,
                        "input_length": tokens,
                        "output_length": 1 + int(draw.expovariate(1 / 340)),
                        "hash_ids": prompt,
                    }
                )
                + "\n"
            )
            rows += 1
    return rows


def nothing(_path: Path) -> str:
    """Do nothing: the imports alone."""
    return ""


def load(path: Path) -> str:
    """Read all conversations at once, as `specload workload inspect` does."""
    workload = load_workload(name="w", format="mooncake", paths=[path])
    return f"{len(workload.conversations)} conversations, {workload.turns} turns"


def bind_all(path: Path) -> str:
    """Bind every conversation."""
    workload = bound(path)
    return f"{len(workload.conversations)} conversations in tokens, {len(workload.dropped)} dropped"


def bind_limit(path: Path) -> str:
    """Bind a thousand conversations, chosen by their hash."""
    workload = bound(path, Policies(limit=1000))
    return f"{len(workload.conversations)} conversations in tokens"


def ship(path: Path) -> str:
    """Bind every conversation and write the token file, as a sweep does."""
    out = path.with_suffix(".tokens")
    write(bound(path), out)
    return f"a token file of {out.stat().st_size / 1e6:.1f} MB"


def replay(path: Path) -> str:
    """Read the token file as the load process does, and make every twentieth conversation's prompts."""
    workload = read(path.with_suffix(".tokens"))
    tokens = 0
    begin = time.process_time()
    for index in range(0, len(workload.conversations), 20):
        for prompt in workload.prompts(workload.conversations[index]):
            tokens += len(prompt)
    seconds = time.process_time() - begin
    return f"{tokens / 1e6:.1f} M tokens made, {1e9 * seconds / tokens:.0f} ns a token"


def ideal(path: Path) -> str:
    """Count what an ideal cache could serve, as the node process does."""
    workload = read(path.with_suffix(".tokens"))
    order = [(index, 0) for index in range(len(workload.conversations))]
    found = ideal_cached(workload, order, 16)
    return f"ideal hit rate {found.tokens / found.prompt_tokens:.4f}"


def bound(path: Path, policies: Policies = DEFAULT) -> TokenWorkload:
    """Return the trace in tokens."""
    source = FileSource(name="w", format="mooncake", paths=[path])
    return bind(source, EmulatedTokenizer(), max_context=CONTEXT, policies=policies)


STEPS: dict[str, Callable[[Path], str]] = {
    "nothing": nothing,
    "import": load,
    "bind": bind_all,
    "bind, limit 1000": bind_limit,
    "bind and write": ship,
    "load process": replay,
    "ideal cache": ideal,
}


def step(name: str, path: Path) -> None:
    """Run one step in this process and print its peak memory, time and words as JSON."""
    begin = time.process_time()
    words = STEPS[name](path)
    # Not `ru_maxrss`: that starts at the peak of whoever started this process.
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"peak": peak, "seconds": time.process_time() - begin, "words": words}))


def main() -> None:
    """Write the trace and run every step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--keep", type=Path, help="folder for the files; a temporary one otherwise")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        step(arguments.step, arguments.keep)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = (arguments.keep or Path(folder)) / "trace.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = write_trace(path, arguments.megabytes)
        size = path.stat().st_size
        print(f"a trace of {size / 1e6:.1f} MB, {rows} rows")
        print(f"{'step':18} {'peak MiB':>9} {'more than nothing / file':>25} {'CPU s':>7}")
        base = 0
        ratios = {}
        for name in STEPS:
            done = subprocess.run(
                [sys.executable, __file__, "--step", name, "--keep", str(path)],
                check=True,
                capture_output=True,
                text=True,
            )
            found = json.loads(done.stdout)
            base = base or found["peak"]
            ratios[name] = round(max(0, found["peak"] - base) / size, 2)
            peak = found["peak"] / MIB
            print(f"{name:18} {peak:9.0f} {ratios[name]:25.2f} {found['seconds']:7.1f}  {found['words']}")
        print(json.dumps({"file_mb": round(size / 1e6, 1), "rows": rows, "ratio": ratios}))


if __name__ == "__main__":
    main()
