"""The command line: `specload COMMAND`, one paragraph and an exit code for every error.

Exit codes: `EXIT_CODES`, which `specload --help` prints.
"""

import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from analysis.untrusted import plain
from engines.errors import EngineError
from engines.nearest import did_you_mean
from jobs.errors import JobError
from orchestrator.errors import SpecloadError
from orchestrator.interrupts import Interrupted
from orchestrator.log_lines import show_warnings
from orchestrator.secrecy import redacted


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command as `specload --help` lists it; its module is `orchestrator/commands/<name>.py`."""

    name: str
    help: str
    example: str
    others: Mapping[str, str] = field(default_factory=dict)
    """First word of those commands of its own that `example` does not show -> an example of each."""

    def example_for(self, words: Sequence[str]) -> str:
        """Return the example that ends the help that `words` ask for."""
        return self.others.get(words[0], self.example) if words else self.example


COMMANDS = (
    Command(
        name="plan",
        help="what would run, what is refused and why, GPU time",
        example="specload plan +experiment=crossover",
    ),
    Command(
        name="rules",
        help="what is refused before it starts, and why, by engine",
        example="specload rules vllm",
    ),
    Command(
        name="sweep",
        help="run a sweep, or go on with it",
        example="specload sweep -m drafter=ngram,eagle3 drafter.k=3,7 layout=tp1,tp2",
    ),
    Command(
        name="submit",
        help="have a Ray cluster run a sweep, or go on with it",
        example="specload submit --address http://HEAD:8265 +experiment=crossover",
    ),
    Command(
        name="status",
        help="how far a sweep is: on a cluster, or in a results folder",
        example="specload status SWEEP --address http://HEAD:8265",
    ),
    Command(
        name="logs",
        help="what the driver of a submitted sweep has printed",
        example="specload logs SWEEP --follow",
    ),
    Command(name="stop", help="stop a submitted sweep; it can go on later", example="specload stop SWEEP"),
    Command(
        name="fetch",
        help="bring the results of a sweep that ran elsewhere",
        example="specload fetch SWEEP --to results",
    ),
    Command(
        name="report",
        help="make a sweep's report anew",
        example="specload report results/SWEEP",
    ),
    Command(
        name="compare",
        help="how two sweeps differ: engine versions, kinds of hardware, days",
        example="specload compare results/OLD results/NEW",
    ),
    Command(
        name="analyse",
        help="what the numbers of a sweep mean, part by part",
        example="specload analyse results/SWEEP k_sweep decomposition",
    ),
    Command(
        name="judge",
        help="judge what another tool measured: vllm bench, AIPerf, GuideLLM",
        example="specload judge --baseline base/*.json --arm eagle3-k5=eagle3/*.json",
    ),
    Command(
        name="capacity",
        help="what the KV caches of a sweep hold, and what a drafter takes of them",
        example="specload capacity results/SWEEP",
    ),
    Command(
        name="acceptance",
        help="acceptance that was asked for or built in, against the realised one",
        example="specload acceptance results/SWEEP",
    ),
    Command(
        name="recommend",
        help="what to serve with, by load: commands, K by load, and what it is worth to a fleet",
        example="specload recommend results/SWEEP --traffic running.csv --price 2.5",
    ),
    Command(
        name="target",
        help="what an end-to-end speed-up needs of decode and acceptance, and at which K it is reached",
        example="specload target results/SWEEP --speedup 1.5",
    ),
    Command(
        name="ui", help="open MLflow on a sweep's store", example="specload ui results/SWEEP --port 5000"
    ),
    Command(
        name="sync",
        help="record in MLflow what a sweep measured while its store was away",
        example="specload sync results/SWEEP",
    ),
    Command(
        name="profile",
        help="where a decode step's time goes, from the engine's own profiler",
        example="specload profile ARM --from results/SWEEP --concurrency 16 --context 2048",
    ),
    Command(
        name="workload",
        help="what is in workload files, with a picture; write replies that are missing",
        example="specload workload inspect trace.jsonl",
        others={
            "record": "specload workload record workload=spec_bench 'workload.paths=[question.jsonl]' "
            "--output replies.jsonl"
        },
    ),
    Command(
        name="doctor",
        help="what is on this machine, what is missing, how to get it",
        example="specload doctor",
    ),
)
EXIT_CODES = {
    0: "done",
    1: "it went wrong; `doctor --gpu` misses something, `acceptance` found a difference",
    2: "something that you can fix: words, files, settings, a store or cluster that does not answer",
    130: "interrupted with Ctrl-C; the same command goes on",
    143: "stopped with SIGTERM; the same command goes on",
}
_DEBUG = "--debug"
_HELP = ("-h", "--help")
_PLANNING = ("plan", "sweep", "submit", "profile")
"""Commands whose words are Hydra's."""
ON_SWEEPS = (
    "report",
    "compare",
    "analyse",
    "recommend",
    "target",
    "capacity",
    "acceptance",
    "status",
    "sync",
    "ui",
)
"""Commands whose first word is the folder of a sweep."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        code = _answer(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()  # a reader that left shows here at the latest
    except BrokenPipeError:
        # the reader of our output left (`specload plan | head`): not an error, and nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _answer(words: list[str]) -> int:
    debug = _DEBUG in words or os.environ.get("SPECLOAD_DEBUG") == "1"
    words = [word for word in words if word != _DEBUG]
    if words and words[0] in {command.name for command in COMMANDS}:
        return _run(words[0], words[1:], debug=debug)
    return _other(words)


def _run(name: str, arguments: Sequence[str], *, debug: bool) -> int:
    show_warnings()
    try:
        return int(importlib.import_module(f"orchestrator.commands.{name}").run(arguments))
    except SystemExit as left:  # argparse: help, or words that it does not take
        if not left.code and any(word in _HELP for word in arguments):
            (command,) = [command for command in COMMANDS if command.name == name]
            print(f"\nexample:\n  {command.example_for(arguments)}", flush=True)
        raise
    except Interrupted as stop:
        _tell(str(stop))
        return stop.exit_code
    except KeyboardInterrupt:
        _tell("interrupted")
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last place where an error can become a sentence
        return _fail(error, debug=debug)


def _other(words: Sequence[str]) -> int:
    """Answer what is no command."""
    first = words[0] if words else ""
    if first in ("-sc", "--shell-completion"):
        return _complete(words)
    if first == "--version":
        print(f"specload {version('specload')}")
    elif first in (*_HELP, "help"):
        print(usage())
    elif not first:
        print(usage(), file=sys.stderr)
        return 2
    else:
        known = [command.name for command in COMMANDS]
        _tell(f"there is no command {first!r}{did_you_mean(first, known)}; commands are {', '.join(known)}")
        return 2
    return 0


def usage() -> str:
    """Return what `specload --help` prints."""
    rows = [
        line
        for command in COMMANDS
        for line in (f"  {command.name:<10} {command.help}", f"             {command.example}")
    ]
    return "\n".join(
        [
            "usage: specload COMMAND [ARGUMENTS]",
            "",
            "Finds out, with evidence, where speculative decoding pays under load.",
            "",
            *rows,
            "",
            "exit codes:",
            *(f"  {code:<10} {meaning}" for code, meaning in EXIT_CODES.items()),
            "",
            "`specload COMMAND --help` says more, --json prints results for programs,",
            "--debug (or SPECLOAD_DEBUG=1) shows tracebacks.",
            'Tab completion: eval "$(specload -sc install=bash)"',
        ]
    )


def exit_code(error: BaseException) -> int:
    """Return 2 for what the user can fix, else 1."""
    if isinstance(error, SpecloadError):
        return error.exit_code
    return 2 if _of_files(error) or (isinstance(error, ValueError) and _is_ours(error)) else 1


def _of_files(error: BaseException) -> str:
    """Return what the file system refused (no rights, no room, a name too long); empty for other errors."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename} cannot be used: {error.strerror}"
    return ""


def _is_ours(error: BaseException) -> bool:
    """Whether a room of ours raised it on purpose: any other ValueError is a defect, not advice."""
    return isinstance(error, EngineError | JobError) or type(error).__module__.partition(".")[0] == "analysis"


def _fail(error: Exception, *, debug: bool) -> int:
    if debug:
        trace = redacted("".join(traceback.format_exception(error)))
        print(plain(trace, lines=True), end="", file=sys.stderr)
        return exit_code(error)
    code = exit_code(error)
    files = _of_files(error)
    known = isinstance(error, SpecloadError) or _is_ours(error) or files
    text = " ".join((files or str(error)).split())
    words = text if known else f"{type(error).__name__}: {text}. This is a defect; --debug shows where"
    _tell(words)
    return code


def _tell(words: str) -> None:
    """Say a sentence on the error channel, without secrets and without what steers a terminal."""
    print(f"specload: {plain(redacted(words))}", file=sys.stderr)


def _complete(words: Sequence[str]) -> int:
    """Install or answer shell completion: Hydra completes the words of plans, options are of our parsers."""
    line = os.environ.get("COMP_LINE", "")
    program, _, rest = line.lstrip().partition(" ")
    command, space, after = rest.lstrip().partition(" ")
    word = after.rpartition(" ")[2]
    if line and not space:
        print(" ".join(entry.name for entry in COMMANDS if entry.name.startswith(command)))
    elif line and command not in {entry.name for entry in COMMANDS}:
        return 0
    elif line and word.startswith("-"):
        print(" ".join(option for option in _options(command) if option.startswith(word)))
    elif line and command in ON_SWEEPS:
        print(" ".join(name for name in _sweeps(word) if name == plain(name)))
    elif not line or command in _PLANNING:
        from orchestrator.sweep import collect  # noqa: PLC0415 - Hydra takes a moment, and only plans need it

        if line:
            os.environ["COMP_LINE"] = f"{program} {after}"
        collect(words, program="specload")
    return 0


def _options(command: str) -> list[str]:
    """Return the options that a command's own help lists."""
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        importlib.import_module(f"orchestrator.commands.{command}").run(["--help"])
    found = re.findall(r"^\s+(?:-\w, )?(--[a-z][a-z-]*)", said.getvalue(), flags=re.MULTILINE)
    return sorted({*found, _DEBUG})


def _sweeps(word: str) -> list[str]:
    """Return the sweeps' folders that begin with `word`, and the folders that lead to some."""
    found = []
    for path in sorted(Path().glob(f"{word}*") if word and not word.startswith(("/", "~")) else []):
        if (path / "plan.json").is_file():
            found.append(str(path))
        elif next(path.glob("*/plan.json"), None) is not None:
            found.append(f"{path}/")
    return found or [str(path.parent) for path in sorted(Path().glob("results/*/plan.json")) if not word]


if __name__ == "__main__":
    sys.exit(main())
