"""What an MLflow run shows of a sweep and of a cell: parameters, tags, metrics. Pure functions.

Names and values pass `shown_name` and `shown` where they are written, descriptions are Markdown.
"""

import math
import re
from collections.abc import Mapping
from datetime import datetime

from analysis.untrusted import markdown, spreadsheet
from engines.digest import digest
from jobs.result import MEASURED, CellResult
from orchestrator.plan import Plan

SWEEP_ID = "specload.sweep_id"
CELL_ID = "specload.cell_id"
KIND = "specload.kind"
CONTENT = "specload.content"
"""Tag with the digest of the recorded result: says whether a run still shows what the ledger has."""
NOTE = "mlflow.note.content"
PARENT = "mlflow.parentRunId"
NAME_LIMIT = 250
"""Characters of a run's or an experiment's name: servers on MySQL or PostgreSQL keep no more."""
VALUE_LIMIT = 6000
"""Characters of a parameter, and of a tag or description, where they keep 8000."""


def shown_name(text: str) -> str:
    """Return the name of a run or an experiment: MLflow's page exports its tables as CSV."""
    return spreadsheet(text, limit=NAME_LIMIT)


def shown(fields: Mapping[str, str]) -> dict[str, str]:
    """Return parameters or tags, likewise; a description is Markdown, and stays as it is."""
    return {
        name: value if name == NOTE else spreadsheet(value, limit=VALUE_LIMIT)
        for name, value in fields.items()
    }


def experiment(plan: Plan) -> str:
    """Return the name of a sweep's experiment."""
    return shown_name(str(plan.tracking.get("experiment") or plan.name))


def sweep_params(plan: Plan) -> dict[str, str]:
    """Return the parameters of a sweep's parent run."""
    return {
        "study": plan.name,
        "workload": plan.workload.name,
        "workload.digest": plan.workload.digest,
        "blocks": str(len(plan.blocks)),
        "arms": str(len(plan.arms)),
        "seed": str(plan.seed),
        "threshold": str(plan.threshold),
    }


def sweep_tags(plan: Plan) -> dict[str, str]:
    """Return the tags of a sweep's parent run."""
    return {SWEEP_ID: plan.sweep, KIND: "sweep", "specload.plan": plan.digest}


def cell_name(result: CellResult) -> str:
    """Return the name of a cell's run: `tp1/ngram-k3 c16 block 0.0 opening`."""
    place = f"block {result.block}.{result.segment}"
    role = "" if result.role == "treatment" else f" {result.role}"
    return f"{result.arm_label} {result.load} {place}{role}"


def cell_params(plan: Plan, result: CellResult) -> dict[str, str]:
    """Return the parameters of a cell's run.

    They repeat the sweep's settings, because the UI's filters do not look at the parent, and name every swept
    key.
    """
    params = {
        "study": plan.name,
        "workload": plan.workload.name,
        "drafter.method": result.drafter,
        "drafter.k": str(result.k),
        "layout": result.layout,
        "load": result.load,
        f"load.{result.axis}": f"{result.level:.10g}",
        "arm": result.arm_label,
        "block": str(result.block),
        "segment": str(result.segment),
        "round": str(result.round),
        "role": result.role,
        "devices": str(result.devices),
        "replicas": str(result.replicas),
    }
    config = next((arm.config for arm in plan.arms if arm.digest == result.arm), None)
    if config is not None:
        params |= {
            "engine.name": config.engine,
            "engine.version": config.version,
            "engine.device": config.device,
            "model": config.model.name,
        }
        if config.drafter.acceptance is not None:
            params["drafter.acceptance"] = config.drafter.acceptance.label
    for key, value in result.factors.items():
        params.setdefault(_name(key), str(value))
    return params


def cell_tags(plan: Plan, result: CellResult, parent: str) -> dict[str, str]:
    """Return the tags of a cell's run."""
    told = [result.reason or "", *(f"gate {g.name}: {g.message}" for g in result.gates if g.failed)]
    return {
        PARENT: parent,
        SWEEP_ID: plan.sweep,
        KIND: "cell",
        CELL_ID: result.cell,
        CONTENT: content(result),
        NOTE: "\n\n".join(markdown(text) for text in (*told, *result.caveats) if text)[:VALUE_LIMIT],
        "specload.arm": result.arm,
        "specload.outcome": result.outcome,
        "specload.cause": result.cause or "",
        "specload.emulated": flag(result.emulated),
        "specload.synthetic": flag(result.synthetic),
        "specload.counterfactual": result.counterfactual,
        "specload.oversubscribed": flag(result.oversubscribed),
    }


def cell_metrics(result: CellResult) -> dict[str, float]:
    """Return the metrics of a cell's run: what is absent or not finite is left out, never made zero."""
    metrics = finite(result.metrics)
    metrics["cell/seconds"] = result.seconds
    if result.start_seconds is not None:
        metrics["engine/start_seconds"] = result.start_seconds
    return metrics


def finite(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Return the metrics that are finite numbers, under names that MLflow allows."""
    return {
        _name(name): float(value)
        for name, value in metrics.items()
        if value is not None and math.isfinite(value)
    }


def content(result: CellResult) -> str:
    """Return the digest of everything a run shows of a cell."""
    data = result.to_dict()
    # As text, because JSON has no NaN; as plain floats, because a number of another type reads back as one.
    data["metrics"] = {
        name: None if value is None else repr(float(value)) for name, value in result.metrics.items()
    }
    data["gates"] = repr(result.gates)
    return digest(data)


def status(result: CellResult) -> str:
    """Return the status of a cell's run."""
    return "FINISHED" if result.outcome == MEASURED else "FAILED"


def started_ms(result: CellResult) -> int | None:
    """Return when the cell started, in milliseconds since the epoch; None if it does not say."""
    try:
        return int(datetime.fromisoformat(result.started).timestamp() * 1000)
    except ValueError:  # it never started, or what is there is no moment
        return None


def _name(text: str) -> str:
    """Return the name of a parameter or a metric: MLflow takes it for a path within a folder."""
    allowed = re.sub(r"[^\w\-. :/]", "_", text, flags=re.ASCII)[:NAME_LIMIT]
    return "/".join(part for part in allowed.split("/") if part.strip(".")) or "_"


def flag(value: bool) -> str:  # noqa: FBT001  one value, one meaning
    """Return a truth value as tags show it."""
    return "true" if value else "false"
