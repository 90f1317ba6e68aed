"""What tokens cost: money from the price of a GPU-hour, and energy where it was measured.

A million tokens cost the price of a device-hour x 1e6 / (3600 x tokens/s per device).
"""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.frame import Sweep
from analysis.points import Figure, figure, points_of
from analysis.section import Section

_SECONDS = 3600.0
_MILLION = 1e6

COLUMNS = {
    "label": "arm",
    "level": "load level, a number on the sweep's axis",
    "devices": "devices of the slice",
    "baseline": "whether it is a baseline",
    "synthetic": "whether acceptance was forced: nobody can serve at this price",
    "emulated": "whether an emulated engine made the figures",
    "output_cost": "price of a million output tokens, prompts included in it, with its 95 % interval",
    "computed_cost": "price of a million uncached prompt and output tokens, with its 95 % interval",
    "output_energy": "J of all GPUs an output token in the steady window, with its 95 % interval",
}


def cost_frame(cells: pd.DataFrame, *, price: float | None) -> pd.DataFrame:
    """Return one row an arm and level with what its tokens cost.

    Args:
        cells: `cells_frame` of a sweep.
        price: of a device-hour, in any currency; None leaves money out.
    """
    points = points_of(cells)
    table = points.facts[["label", "level", "devices", "baseline", "synthetic", "emulated"]].copy()
    devices = points.cells["devices"].to_numpy(dtype=float)
    nothing = np.full(len(points), np.nan)
    costs: Mapping[str, Figure | None] = {
        "output_cost": figure(points, "throughput/output_tok_s_per_device"),
        "computed_cost": figure(points, "throughput/computed_tok_s", scale=devices),
    }
    for name, found in costs.items():
        ends = (nothing,) * 3 if price is None or found is None else _priced(found, price)
        table[name], table[f"{name}_lo"], table[f"{name}_hi"] = ends
    energy = figure(points, "energy/joules_per_output_token").interval()
    table["output_energy"], table["output_energy_lo"], table["output_energy_hi"] = energy
    known = table["output_energy"].notna() | table["output_cost"].notna()
    return table[known].reset_index(drop=True)


def _priced(rate: Figure, price: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what a million tokens cost at a rate per device, with the ends of the interval."""
    inverse = replace(rate, means=np.log(price * _MILLION / _SECONDS) - rate.means)
    return inverse.interval()


def cost(sweep: Sweep) -> Section:
    """Return the section `cost`, by the plan's price."""
    return cost_section(sweep, price=sweep.plan.get("gpu_hour_price"), currency=currency_of(sweep.plan))


def currency_of(plan: Mapping[str, Any]) -> str:
    """Return what the plan's prices are in."""
    return str(plan.get("currency") or "USD")


def cost_section(sweep: Sweep, *, price: float | None, currency: str) -> Section:
    """Return the section `cost` for a price."""
    frame = cost_frame(sweep.cells, price=price)
    unit = "GPU" if any(arm["config"]["device"] == "gpu" for arm in sweep.plan.get("arms", ())) else "device"
    ask = f"specload recommend {shlex.quote(str(sweep.directory))} --price PRICE"
    notes = [f"costs are in {currency} at {price:g} {currency} per {unit}-hour"] if price is not None else []
    if price is None and not frame.empty:
        notes.append(f"no price is known, so money is missing: `{ask}`, or design.gpu_hour_price")
    if not frame.empty and bool(frame["output_energy"].isna().all()):
        notes.append("energy is missing: no cell has readings of a GPU's energy counter")
    shown = ["label", "level"]
    shown += ["output_cost", "computed_cost"] if price is not None else []
    shown += ["output_energy"] if not frame.empty and bool(frame["output_energy"].notna().any()) else []
    return Section(
        name="cost",
        title=f"Cost of tokens ({currency})" if price is not None else "Energy of tokens",
        frame=frame,
        columns=COLUMNS,
        shown=tuple(shown),
        notes=tuple(notes),
        missing=f"neither a price nor energy is known: `{ask}` with the price of a {unit}-hour, or "
        "design.gpu_hour_price=PRICE in the command of the sweep; energy needs NVIDIA GPUs",
    )
