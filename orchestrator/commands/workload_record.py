"""`specload workload record`: have a baseline engine write the replies of a workload that has none, once."""

import argparse
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path

from jobs.nouns import counted
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.grid import groups_help, use_rays_authentication
from orchestrator.commands.parser import Parser
from orchestrator.record_plan import plan_recording
from orchestrator.sweep import collect
from orchestrator.tables import console

SUMMARY = (
    "Start the engine that the words describe, without a drafter, have it reply to every turn that lacks a "
    "reply, and write text, natural lengths and who wrote them to FILE and FILE.json. Replies end where the "
    "model ends them, at the latest after workload.max_output_tokens (null: 1024). The same words again go "
    "on where it stopped."
)


def run(arguments: Sequence[str]) -> int:
    """Record the workload that the words ask for."""
    parser = Parser(
        prog="specload workload record",
        description=textwrap.fill(SUMMARY, width=100),
        epilog=groups_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="specload workload record [OVERRIDE ...] --output FILE [--temperature T]",
        allow_abbrev=False,
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON Lines file to write")
    parser.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        metavar="T",
        help="0 (default): greedy, else by `seed`",
    )
    add_json(parser)
    options, words = parser.parse_known_args(arguments)
    points = collect(words, program="specload workload record")
    if not points:
        return 0
    use_rays_authentication(points[0].config["cluster"]["address"])
    plan = plan_recording(points, temperature=options.temperature)
    # Late: Ray takes seconds to load, and a typo should not wait for it.
    from orchestrator.record import record  # noqa: PLC0415 - see above

    out = console(stderr=options.json)  # what is said on the way is no JSON
    for note in plan.notes:
        out.print(f"note: {note}")
    header = record(plan, options.output, say=out.print)
    if options.json:
        print_json({"file": options.output, "emulated": plan.config.device == "emulated", "header": header})
        return 0
    ends = ", ".join(f"{count} {reason}" for reason, count in sorted(header.finish_reasons.items()))
    out.print(
        f"{options.output}: {counted(header.turns, 'turn')}, {counted(header.output_tokens, 'token')} "
        f"({ends}), {counted(len(header.dropped), 'conversation')} left out or shortened, "
        f"content validity {header.validity}"
    )
    if plan.config.device == "emulated":
        out.print("emulated engine: the replies are filler; acceptance on them means nothing")
    path = shlex.quote(str(options.output))
    out.print(f"sweep it: specload sweep workload=recorded workload.paths=[{path}] ...")
    return 0
