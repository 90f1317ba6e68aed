"""The summary as sections: verdicts, crossovers, baselines, A/A spreads, and what stands beside them."""

import math

import pandas as pd

from analysis.arms import FLAGS
from analysis.fit import CONFIDENCE
from analysis.objectives import OBJECTIVES
from analysis.rows import VerdictRow, ratio_columns
from analysis.section import Section
from analysis.summary import Summary
from analysis.verdict import INVALID, NO_VERDICT, UNDECIDED

_ARM = {
    "arm": "label of the arm: layout, drafter, draft length K, and swept keys where labels repeat",
    "level": "load level on the sweep's axis",
}
_FLAGS = {
    **FLAGS,
    "counterfactual": "`kv_matched` or `loaded_only` of an engine nobody would serve with",
}
_WHY = (INVALID, NO_VERDICT, UNDECIDED)
"""Verdicts whose reason is told in the table."""


def summary_sections(summary: Summary) -> tuple[Section, ...]:
    """Return the summary as sections, in the order of a report."""
    compared = [
        name
        for name, objective in OBJECTIVES.items()
        if name != "fixed_total" and (not objective.optional or any(row.ratio(name) for row in summary.rows))
    ]
    return (
        _verdicts(summary, compared),
        _crossovers(summary),
        _baselines(summary, compared),
        _spreads(summary, compared),
        _implied(summary),
    )


def _verdicts(summary: Summary, compared: list[str]) -> Section:
    frame = pd.DataFrame(
        [
            {
                "arm": row.label,
                "level": row.level,
                "verdict": row.verdict,
                **{
                    key: value
                    for name in compared
                    for key, value in ratio_columns(name, row.ratio(name)).items()
                },
                "mal": _number(row.mal),
                "blocks": row.blocks,
                "notes": _notes(row),
                **_flags(row),
            }
            for row in summary.rows
        ]
    )
    columns = {
        **_ARM,
        "verdict": f"on {OBJECTIVES[summary.objective].title}: wins, loses, no difference, undecided, "
        "invalid (no valid pair), no verdict (not judged)",
        **{name: f"{OBJECTIVES[name].title} over the baseline's; {_better(name)}" for name in compared},
        "mal": "mean acceptance length: tokens emitted a verification step, the verifier's own included",
        "blocks": "pairs, one a block and segment, that the verdict rests on",
        "notes": "why there is no clear verdict, and what has to be said with the figures",
        **_FLAGS,
    }
    return Section(
        name="verdicts",
        title=f"Verdicts on {OBJECTIVES[summary.objective].title}",
        frame=frame,
        columns=columns if len(frame) else {},
        shown=("arm", "level", "verdict", *compared, "mal", "blocks", "notes") if len(frame) else (),
        notes=(
            (
                f"ratios to the baseline with simultaneous {CONFIDENCE:.0%} intervals, which hold for all "
                "arms of one baseline together"
            ),
        )
        if len(frame)
        else (),
        missing="" if len(frame) else "no arm was compared with a baseline",
    )


def _crossovers(summary: Summary) -> Section:
    rows = []
    for row in summary.crossovers:
        main = row.crossover.main
        rows.append(
            {
                "arm": row.label,
                "ratio_of": OBJECTIVES[row.objective].title,
                "crossover": row.text,
                "estimate": _number(main.log_log if main else None),
                "estimate_lo": _number(row.crossover.low),
                "estimate_hi": _number(row.crossover.high),
                "log_ratio": _number(main.log_linear if main else None),
                "linear": _number(main.linear if main else None),
                "oversubscribed": row.oversubscribed,
            }
        )
    columns = {
        "arm": _ARM["arm"],
        "ratio_of": "what the ratio is of",
        "crossover": "where it falls through 1, and every other crossing",
        "estimate": "load at which it passes 1, interpolated in log ratio over log load, with its 95 "
        "% interval",
        "log_ratio": "the same, interpolated in log ratio over load",
        "linear": "the same, interpolated in the ratio over load",
        "oversubscribed": _FLAGS["oversubscribed"],
    }
    return Section(
        name="crossovers",
        title="Crossovers: where speculation stops paying",
        frame=pd.DataFrame(rows),
        columns=columns if rows else {},
        shown=("arm", "ratio_of", "crossover", "estimate", "log_ratio", "linear") if rows else (),
        notes=(
            (
                "the bracket is what was measured; the estimate interpolates between its ends, and the "
                "two plainer interpolations show how much the method matters"
            ),
        )
        if rows
        else (),
        missing="" if rows else "no arm was compared with a baseline, so no curve passes 1",
    )


def _baselines(summary: Summary, compared: list[str]) -> Section:
    rows = [
        {
            "arm": row.label,
            "level": row.level,
            "cells": row.cells,
            **{name: _number(row.values.get(name)) for name in compared},
        }
        for row in summary.baselines
    ]
    return Section(
        name="baselines",
        title="Baselines: what the ratios refer to",
        frame=pd.DataFrame(rows),
        columns={
            **_ARM,
            "cells": "measured opening and closing cells",
            **{name: f"geometric mean over them: {OBJECTIVES[name].definition}" for name in compared},
        }
        if rows
        else {},
        missing="" if rows else "no baseline was measured; `specload status` says what became of the cells",
    )


def _spreads(summary: Summary, compared: list[str]) -> Section:
    rows = [
        {
            "level": row.level,
            "segments": row.segments,
            **{name: _number(row.values.get(name)) for name in compared},
        }
        for row in summary.aa_spread
    ]
    return Section(
        name="aa_spread",
        title="A/A spread: what no difference looks like here",
        frame=pd.DataFrame(rows),
        columns={
            "level": _ARM["level"],
            "segments": "segments with an opening and a closing baseline",
            **{
                name: "root mean square of ln(closing / opening) of the same baseline's "
                f"{OBJECTIVES[name].title}"
                for name in compared
            },
        }
        if rows
        else {},
        missing="" if rows else "no segment has an opening and a closing baseline that were measured",
    )


def _implied(summary: Summary) -> Section:
    rows = [
        {
            "arm": row.label,
            "level": row.level,
            "sign_flip_p": _number(row.sign_flip_p),
            "t": row.threshold,
            "step_ratio": _number(row.step_ratio),
            "uncached_share_ratio": _number(row.uncached_share_ratio),
            **ratio_columns("fixed_total", row.fixed_total),
            "reason": row.reason,
            **_flags(row),
        }
        for row in summary.rows
    ]
    return Section(
        name="implied",
        title="Beside the verdict: sign-flip test and implied figures",
        frame=pd.DataFrame(rows),
        columns={
            **_ARM,
            "sign_flip_p": "two-sided p of the sign-flip test, printed and never deciding: with n "
            "blocks it cannot fall below 2/2^n",
            "t": "threshold of the verdict, a share: the larger of the practical threshold and the "
            "A/A spread",
            "step_ratio": "MAL over the user-speed ratio: length of a step over the baseline's, by "
            "the user's clock",
            "uncached_share_ratio": "computed over total ratio: share of tokens that no cache had, "
            "speculative over baseline",
            "fixed_total": "total throughput over the whole fixed work, drain included, over the baseline's",
            "reason": "of the verdict",
            **_FLAGS,
        }
        if rows
        else {},
        shown=(
            "arm",
            "level",
            "sign_flip_p",
            "t",
            "step_ratio",
            "uncached_share_ratio",
            "fixed_total",
            "reason",
        )
        if rows
        else (),
        missing="" if rows else "no arm was compared with a baseline",
    )


def _flags(row: VerdictRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in _FLAGS}


def _notes(row: VerdictRow) -> str:
    return "; ".join([*([row.reason] if row.verdict in _WHY else []), *row.caveats])


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _better(name: str) -> str:
    return "above 1 is better" if OBJECTIVES[name].higher_is_better else "below 1 is better"
