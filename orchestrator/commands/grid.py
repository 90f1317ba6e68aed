"""What `plan` and `sweep` share: their help, their own options, and the plan that their words ask for."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.errors import MissingRepliesError
from jobs.workload.tokens import TokenWorkload
from orchestrator.commands.as_json import add_json
from orchestrator.commands.cluster import add_address
from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError
from orchestrator.goals import check_confirm
from orchestrator.plan import Plan
from orchestrator.planning import make_plan
from orchestrator.record_plan import record_command
from orchestrator.results_root import ResultsRoot
from orchestrator.saved import Saved
from orchestrator.sweep import collect, config_folder
from orchestrator.tries import ASKABLE

_HYDRAS = (
    "--hydra-help",
    "--version",
    "--cfg",
    "--resolve",
    "--package",
    "--run",
    "--multirun",
    "--shell-completion",
    "--config-path",
    "--config-name",
    "--config-dir",
    "--experimental-rerun",
    "--info",
)
"""Options that are Hydra's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the user asked for."""

    plan: Plan
    workload: TokenWorkload
    root: ResultsRoot
    """Where the sweeps are kept."""
    retry: tuple[str, ...]
    """Outcomes whose cells are measured again, whatever their cause."""
    take_over: bool
    """Take the sweep over from a dead driver on another machine."""

    @property
    def results(self) -> Path:
        """The local folder that keeps the sweeps."""
        return self.root.folder


def parse(name: str, summary: str, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return our own options and the words that are Hydra's; `--help` prints and leaves."""
    parser = Parser(
        prog=f"specload {name}",
        description=summary,
        epilog=groups_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"specload {name} [OVERRIDE ...] [-m] [--cfg job] [--config-dir DIR] [options]",
        allow_abbrev=False,
    )
    parser.add_argument("--from", dest="saved", metavar="PLAN", help="run a saved plan.json again")
    parser.add_argument(
        "--results", metavar="PLACE", help="with --from: the folder or URL that keeps the sweeps"
    )
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="with results at a URL: the local folder (default: results)"
    )
    if name == "sweep":
        parser.add_argument(
            "--confirm",
            type=int,
            metavar="BLOCKS",
            help="with --from: fresh blocks for the winner and K by load, as design.confirm",
        )
    if name in ("sweep", "submit"):
        parser.add_argument(
            "--retry",
            type=_outcomes,
            default=(),
            metavar="OUTCOMES",
            help="measure cells again that ended so: failed, invalid, or failed,invalid",
        )
        parser.add_argument(
            "--take-over",
            action="store_true",
            help="go on with the sweep of a driver on another machine that died without freeing it",
        )
    add_json(parser)
    if name == "profile":
        _add_profile_options(parser)
    if name == "submit":
        add_address(parser)
        parser.add_argument("--follow", action="store_true", help="print what the driver prints to its end")
        parser.add_argument(
            "--stage",
            action="store_true",
            help="ask no cluster: leave the plan at the results URL and print the driver's command line",
        )
    options, words = parser.parse_known_args(arguments)
    for word in words:
        if word.startswith("--") and not any(option.startswith(word.partition("=")[0]) for option in _HYDRAS):
            message = f"there is no option {word}{parser.meant(word)}; `specload {name} --help` lists them"
            raise ConfigError(message)
    return options, words


def _add_profile_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "specload profile [ARM ...] [OVERRIDE ...] --concurrency C [--context N] [options]"
    parser.add_argument(
        "--concurrency", type=int, required=True, metavar="C", help="requests held in decode at once"
    )
    parser.add_argument(
        "--context", type=int, metavar="N", help="KV length of each in tokens (default: the workload's mean)"
    )
    parser.add_argument("--steps", type=int, default=40, metavar="S", help="steps to look at (default 40)")
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        metavar="R",
        help="times to look at them; the fastest counts (default 3)",
    )
    parser.add_argument(
        "--estimate", action="store_true", help="estimate from step times, even where there is a profiler"
    )


def _outcomes(text: str) -> tuple[str, ...]:
    """Return the outcomes that `--retry` names, each once."""
    found = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in found:
        if word not in ASKABLE:
            message = f"{word!r} is no outcome to try again; give {', '.join(ASKABLE)}, or both with a comma"
            raise argparse.ArgumentTypeError(message)
    return found


def asked(name: str, options: argparse.Namespace, words: Sequence[str]) -> Asked | None:
    """Return the plan; None when the words only asked Hydra to print something.

    Raises:
        ConfigError: words and options that exclude each other, or what planning refuses.
    """
    retry = getattr(options, "retry", ())
    take_over = bool(getattr(options, "take_over", False))
    confirm = getattr(options, "confirm", None)
    if confirm is not None:
        check_confirm(confirm)
    if options.saved is not None:
        if words:
            message = f"--from runs a saved plan as it is; leave out {' '.join(words)}"
            raise ConfigError(message)
        saved = Saved.at(options.saved, results=options.results, work=options.work)
        plan = saved.plan if confirm is None else replace(saved.plan, confirm=confirm)
        return Asked(plan=plan, workload=saved.workload, root=saved.root, retry=retry, take_over=take_over)
    if confirm is not None:
        message = "--confirm goes with --from; otherwise set design.confirm=BLOCKS"
        raise ConfigError(message)
    if options.results is not None:
        message = "--results goes with --from; otherwise set results=FOLDER"
        raise ConfigError(message)
    points = collect(words, program=f"specload {name}")
    if not points:
        return None
    try:
        planned = make_plan(points)
    except MissingRepliesError as error:
        message = f"{error}; {record_command(points)}"
        raise ConfigError(message) from error
    root = ResultsRoot.of(str(points[0].config["results"]), work=options.work)
    return Asked(plan=planned.plan, workload=planned.workload, root=root, retry=retry, take_over=take_over)


def groups_help() -> str:
    """Return the groups of the configuration with their options, and Hydra's grammar in four lines."""
    folder = config_folder()
    groups = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("_"))
    lines = ["groups (choose with GROUP=OPTION):"]
    for group in groups:
        names = ", ".join(sorted(path.stem for path in group.glob("*.yaml")))
        plus = "+" if group.name == "experiment" else " "
        lines.append(f" {plus}{group.name:<11} {names}")
    return "\n".join(
        [
            *lines,
            "",
            "grammar (Hydra's own):",
            "  drafter=ngram,eagle3 -m      a comma is an axis of the grid; -m sweeps it",
            "  'load.concurrency=[1,4,16]'  a list is one value",
            "  +engine.flags.KEY=VALUE      adds an entry to an open map",
            "  --cfg job                    prints the configuration and does nothing else",
        ]
    )


def use_rays_authentication(address: str | None) -> None:
    """Ask for the authentication that Ray uses on a local cluster anyway, or it warns at every start.

    Ray reads this when it is imported.
    """
    if address is None:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
