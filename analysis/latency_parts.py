"""What each cell's latency is made of beside its baseline's, so that parts of a log ratio add up exactly.

Mean end-to-end latency E is decode D and the rest N, so E'/E = f D'/D + (1 - f) N'/N with f the baseline's
decode share. Logarithmic means turn this sum into a product:

    ln(E'/E) = w_D ln(D'/D) + w_N ln(N'/N),    w_D = L(D', D) / L(E', E),    L(a, b) = (a - b) / ln(a/b)

(the additive Divisia index with logarithmic-mean weights; B. W. Ang, Energy Policy 32, 2004): exact, and the
order of the parts does not matter. D'/D is tokens a step and step time; in a closed loop the same users make
total throughput go with 1/E (Little's law).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.arms import MATCHED, ArmFacts
from analysis.contrasts import log_figure
from analysis.ksweep import level_figures
from jobs.result import MEASURED, TREATMENT

PARTS = ("acceptance", "step_cost", "non_decode", "cached_share", "kv_capacity", "residual")
FIGURES = ("x", "step", "h", "growth", "uncached", "computed", "total")
"""Logs over the baseline that are no parts."""
_STRATUM = ["pair", "block", "segment"]


def parts_of_cells(group: pd.DataFrame, facts: Mapping[str, ArmFacts], *, closed: bool) -> pd.DataFrame:
    """Return the parts of each cell's log ratio to the mean of its segment's baselines.

    Args:
        group: cells of one level and condition.
        facts: `arm_facts` of the sweep.
        closed: whether the same users are always there; if not, only user speed is split.

    Returns:
        Index of `group`. `total:<part>` and `user_speed:<part>` with `<part>` of `PARTS` and `whole` (they
        add up to it, cell by cell), 0 where a part is not told apart: `cached_known`, `kv_known` (bool).
        `FIGURES`: logs over the baseline: `x` (user speed), `step`, `h` (all time but decode),
        `growth` (E'/E), `uncached` (uncached share of all tokens, counted), throughputs. `share`: f.
    """
    logs = _logs(group)
    base = _references(group, logs)
    against, kv_known = _matched(group, facts, logs, base)
    d = logs - against
    kv = against - base  # 0 but for arms whose baseline with matched KV was measured
    found = pd.DataFrame(index=group.index)
    found["user_speed:whole"] = logs["speed"] - base["speed"]
    found["user_speed:acceptance"] = d["tokens"]
    found["user_speed:step_cost"] = -d["step"]
    found["user_speed:kv_capacity"] = kv["speed"]
    found["user_speed:non_decode"] = 0.0
    found["user_speed:cached_share"] = 0.0
    found["user_speed:residual"] = d["speed"] - d["tokens"] + d["step"]
    share = 1.0 / (1.0 + np.exp(against["rest"]))
    decode, rest = share * np.exp(-d["speed"]), (1.0 - share) * np.exp(d["rest"] - d["speed"])
    whole = decode + rest
    weight_d = _log_mean(decode, share) / _log_mean(whole, np.ones(len(whole)))
    weight_n = _log_mean(rest, 1.0 - share) / _log_mean(whole, np.ones(len(whole)))
    cached = d["uncached_prompt"]
    found["cached_known"] = cached.notna()
    if closed:
        found["total:whole"] = logs["total"] - base["total"]
        found["total:acceptance"] = weight_d * d["tokens"]
        found["total:step_cost"] = -weight_d * d["step"]
        found["total:cached_share"] = -weight_n * cached.fillna(0.0)
        found["total:non_decode"] = -weight_n * (d["rest"] - d["speed"] - cached.fillna(0.0))
        found["total:kv_capacity"] = kv["total"]
        explained = sum(found[f"total:{part}"] for part in PARTS if part != "residual")
        found["total:residual"] = found["total:whole"] - explained
    natural = logs - base
    natural_share = 1.0 / (1.0 + np.exp(base["rest"]))
    found["kv_known"] = kv_known
    found["x"] = natural["speed"]
    found["step"] = natural["step"]
    found["h"] = natural["rest"] - natural["speed"]
    found["growth"] = np.log(
        natural_share * np.exp(-natural["speed"])
        + (1.0 - natural_share) * np.exp(natural["rest"] - natural["speed"])
    )
    found["uncached"] = natural["uncached"]
    found["computed"] = natural["computed"]
    found["total"] = natural["total"]
    found["share"] = 1.0 / (1.0 + np.exp(logs["rest"]))
    return found


def _logs(group: pd.DataFrame) -> pd.DataFrame:
    figures = level_figures(group)
    share = group["latency/decode_share"].to_numpy(dtype=float)
    inside = np.where((share > 0.0) & (share < 1.0), share, np.nan)
    prompt = group["tokens/client_prompt"].to_numpy(dtype=float)
    fresh = prompt - group["cache/client_cached_tokens"].to_numpy(dtype=float)
    output = group["tokens/client_output"].to_numpy(dtype=float)
    logs = pd.DataFrame(
        {
            "tokens": figures["tokens"],
            "step": figures["step"],
            "speed": figures["user_speed"],
            "total": figures["total"],
            "computed": log_figure(group, "throughput/computed_tok_s"),
            "rest": np.log((1.0 - inside) / inside),
            "uncached_prompt": _log(fresh),
            "uncached": _log(fresh + output) - _log(prompt + output),
        },
        index=group.index,
    )
    logs.loc[(group["outcome"] != MEASURED).to_numpy(dtype=bool)] = np.nan
    return logs


def _log(values: np.ndarray) -> np.ndarray:
    logs: np.ndarray = np.log(values, out=np.full(len(values), np.nan), where=values > 0.0)
    return logs


def _references(group: pd.DataFrame, logs: pd.DataFrame) -> pd.DataFrame:
    """Return for each cell the mean logs of the baselines of its segment."""
    own = logs.copy()
    own.loc[(group["role"] == TREATMENT).to_numpy(dtype=bool)] = np.nan
    keys = [group[name] for name in _STRATUM]
    means: pd.DataFrame = own.groupby(keys).transform("mean")
    return means


def _matched(
    group: pd.DataFrame, facts: Mapping[str, ArmFacts], logs: pd.DataFrame, base: pd.DataFrame
) -> tuple[pd.DataFrame, pd.Series]:
    """Return what each cell's parts refer to: its baseline with matched KV where every one was measured."""
    kinds = group["arm"].map({arm: fact.kind for arm, fact in facts.items()})
    matched = group[(kinds == MATCHED) & (group["outcome"] == MEASURED)]
    known = pd.Series(False, index=group.index)
    against = base.copy()
    if matched.empty:
        return against, known
    of = matched["kv_of"].astype(str)
    places = {
        (*key, arm): index
        for key, arm, index in zip(
            matched[_STRATUM].itertuples(index=False, name=None), of, matched.index, strict=True
        )
    }
    for arm in sorted(set(of)):
        own = group[(group["arm"] == arm) & (group["outcome"] == MEASURED)]
        found = [places.get((*key, arm)) for key in own[_STRATUM].itertuples(index=False, name=None)]
        if found and all(place is not None for place in found):
            against.loc[own.index] = logs.loc[found].to_numpy()
            known.loc[own.index] = True
    return against, known


def _log_mean(a: pd.Series, b: pd.Series | np.ndarray) -> pd.Series:
    """Return the logarithmic mean of positive numbers, element by element."""
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    ratio = np.log(first / second)
    near = np.abs(ratio) < 1e-9
    mean = np.where(near, first, (first - second) / np.where(near, 1.0, ratio))
    return pd.Series(mean, index=a.index)
