"""`specload recommend`: what to serve with, by load; and what that is worth to a fleet."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError
from orchestrator.goals import check_price, slo_of
from orchestrator.saved import read_plan
from orchestrator.tables import console

WIDTH = 100
"""Columns of what is printed into a file or a pipe, but for lines to copy."""
SUMMARY = (
    "Print what a sweep recommends to serve with in each range of loads, by how much it leads, the engine's "
    "command line, and K by load where one drafter's best draft length changes with it. With a fleet's "
    "traffic also what each configuration would gain or lose against today's."
)


def run(arguments: Sequence[str]) -> int:
    """Print the recommendation of one sweep."""
    options = _parser().parse_args(arguments)
    _check(options)
    # Late: pandas and scipy take a second to load, and `--help` should not wait for them.
    from analysis.cost import cost_section, currency_of  # noqa: PLC0415 - see above
    from analysis.decision import decision  # noqa: PLC0415 - see above
    from analysis.fleet import fleet_value  # noqa: PLC0415 - see above
    from analysis.fleet_table import fleet_section  # noqa: PLC0415 - see above
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above
    from analysis.goodput import checked, goodput, limits_of  # noqa: PLC0415 - see above
    from analysis.recommendation import recommend  # noqa: PLC0415 - see above
    from analysis.recommendation_table import recommendation_section  # noqa: PLC0415 - see above
    from analysis.summary import summary_of  # noqa: PLC0415 - see above
    from analysis.traffic import fleet_load  # noqa: PLC0415 - see above
    from analysis.traffic_file import read_traffic  # noqa: PLC0415 - see above
    from orchestrator.recommending import advice_view, advise  # noqa: PLC0415 - see above

    limits = {"ttft_ms": options.slo_ttft_ms, "tpot_ms": options.slo_tpot_ms, "e2el_ms": options.slo_e2el_ms}
    asked = slo_of(limits).limits
    plan = read_plan(options.sweep)
    sweep = checked(load_sweep(options.sweep), asked)
    traffic = None if options.traffic is None else read_traffic(options.traffic)
    found = recommend(sweep, objective=options.objective)
    price = plan.gpu_hour_price if options.price is None else options.price
    currency = options.currency or currency_of(sweep.plan)
    sections = [recommendation_section(sweep, found)]
    if limits_of(sweep.plan):
        sections.append(goodput(sweep))
    if price is not None:
        sections.append(cost_section(sweep, price=price, currency=currency))
    if traffic is not None:
        load = fleet_load(traffic, servers=options.servers, hold=options.max_hold)
        fleet = fleet_value(sweep, found, load, today=options.today)
        sections.append(fleet_section(found, fleet, load, price=price, currency=currency))
    summary = summary_of(sweep, objective=found.objective)
    advice = advise(plan, sweep, found, decision(sweep, summary, found), sections)
    if options.json:
        print_json(advice.to_dict())
    else:
        console(width=WIDTH).print(advice_view(advice, explain=options.explain), crop=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="specload recommend",
        description=SUMMARY,
    )
    parser.add_sweep("sweep", help="results/SWEEP, or SWEEP alone")
    parser.add_argument(
        "--objective", help="choose on this and not on the plan's: total, output, goodput, ..."
    )
    for name, words in (
        ("ttft", "time to first token"),
        ("tpot", "time per output token"),
        ("e2el", "end-to-end latency"),
    ):
        parser.add_argument(
            f"--slo-{name}-ms", type=float, metavar="MS", help=f"count goodput anew: limit of the {words}"
        )
    parser.add_argument("--price", type=float, metavar="PRICE", help="price of a GPU-hour (device-hour)")
    parser.add_argument("--currency", help="what the price is in (default: the plan's)")
    parser.add_argument(
        "--traffic",
        type=Path,
        metavar="FILE",
        help="running requests over time: a Prometheus range query as JSON, or CSV `time,running`",
    )
    parser.add_argument("--today", metavar="LABEL", help="arm that serves today (default: the baseline)")
    parser.add_argument(
        "--servers", type=int, default=1, metavar="N", help="servers that each series of the traffic sums"
    )
    parser.add_argument(
        "--max-hold", type=float, metavar="S", help="longest time that a sample holds (default: five steps)"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="also say why each arm was chosen, how well each range is known, what is undecided and what "
        "would decide it; define every column of the tables",
    )
    add_json(parser)
    return parser


def _check(options: argparse.Namespace) -> None:
    check_price(options.price)
    if options.servers < 1:
        message = f"--servers is {options.servers}; it counts servers: give 1 or more"
        raise ConfigError(message)
    if options.max_hold is not None and not options.max_hold > 0:
        message = f"--max-hold is {options.max_hold:g}; it is in seconds: give more than 0"
        raise ConfigError(message)
    if options.traffic is None and (options.today is not None or options.max_hold or options.servers != 1):
        message = "--today, --servers and --max-hold go with --traffic FILE"
        raise ConfigError(message)
