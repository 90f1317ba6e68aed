"""`specload target`: what an end-to-end target needs of decode and of acceptance, and whether it can be."""

import argparse
from collections.abc import Callable, Sequence

from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError
from orchestrator.saved import read_plan
from orchestrator.tables import console

SUMMARY = (
    "Print what an end-to-end speed-up needs: from a sweep the decode share, step cost and acceptance of "
    "each drafter at each level, and at which K the target is reached; without a sweep from shares and costs "
    "that are given."
)


def run(arguments: Sequence[str]) -> int:
    """Print what a target needs."""
    parser = Parser(
        prog="specload target",
        description=SUMMARY,
    )
    parser.add_sweep("sweep", nargs="?", help="results/SWEEP, or SWEEP alone")
    parser.add_argument("--speedup", type=float, required=True, help="end-to-end speed-up wanted, 1.5")
    parser.add_argument(
        "--decode-share", type=_several(float), help="without a sweep: decode share of latency, .83 or .7,.83"
    )
    parser.add_argument("--token-cost", type=float, help="cost of one more draft token, in plain steps")
    parser.add_argument(
        "--fixed-cost", type=float, default=0.0, help="cost of speculation at any K, likewise"
    )
    parser.add_argument("--k", type=_several(int), help="draft lengths, 1,3,5,7")
    add_json(parser)
    options = parser.parse_args(arguments)
    if (options.sweep is None) == (options.decode_share is None):
        parser.error("give either a sweep (results/SWEEP) or --decode-share")
    if options.sweep is not None and (options.k is not None or options.token_cost is not None):
        parser.error("--k and --token-cost go with --decode-share; a sweep has its own")
    if (options.k is None) != (options.token_cost is None):
        parser.error("--k and --token-cost go together")
    if options.speedup <= 0.0:
        message = f"--speedup is {options.speedup:g}; it is how many times faster: more than 0"
        raise ConfigError(message)
    for share in options.decode_share or ():
        if not 0.0 <= share <= 1.0:
            message = f"--decode-share is {share:g}; it is a share of the latency: 0 to 1"
            raise ConfigError(message)
    for k in options.k or ():
        if k < 1:
            message = f"--k is {k}; it counts draft tokens: 1 or more"
            raise ConfigError(message)
    # Late: pandas and scipy take a second to load, and `--help` should not wait for them.
    from analysis.formulas import step_ratio  # noqa: PLC0415 - see above
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above
    from analysis.target import bare_target, target  # noqa: PLC0415 - see above
    from orchestrator.section_tables import section_tables  # noqa: PLC0415 - see above

    if options.sweep is not None:
        read_plan(options.sweep)  # what was changed by hand is told before it is counted
        section = target(load_sweep(options.sweep), options.speedup)
    else:
        steps = {k: options.fixed_cost + step_ratio(options.token_cost, 0.0, k) for k in options.k or ()}
        section = bare_target(options.speedup, options.decode_share, steps)
    if options.json:
        print_json(section.to_dict())
    else:
        console().print(section_tables([section]))
    return 0


def _several(kind: type[int] | type[float]) -> Callable[[str], tuple[int | float, ...]]:
    """Return a reader of one number, or of several with commas between them."""

    def read(text: str) -> tuple[int | float, ...]:
        try:
            return tuple(kind(part) for part in text.split(","))
        except ValueError as error:
            message = f"{text!r} is not one or more numbers with commas between them"
            raise argparse.ArgumentTypeError(message) from error

    return read
