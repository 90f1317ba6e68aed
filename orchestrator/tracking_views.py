"""Addresses of MLflow's own UI: the views of a study and of a sweep that nobody should have to set up."""

from pathlib import Path
from urllib.parse import quote, urlencode

from orchestrator import tracking_fields as fields
from orchestrator.errors import TrackingError
from orchestrator.plan import Plan
from orchestrator.tracking_curves import CURVE
from orchestrator.tracking_store import open_store, store_errors, store_uri

TRAINING = {"workflowType": "machine_learning"}
"""Part of an address: the UI has two sets of pages, and runs and charts are in this one."""
KIND = {"mlflow.experimentKind": "custom_model_development"}
"""Tag of an experiment: its page begins with runs, and does not ask what kind it is."""


def chart(experiment: str, sweep: str | None = None) -> str:
    """Return the address, on the server, of the charts of ratio against load: of a sweep, or of a study."""
    query = f"tags.`{fields.KIND}` = '{CURVE}'"
    if sweep is not None:
        query += f" AND tags.`{fields.SWEEP_ID}` = '{sweep}'"
    words = {"searchFilter": query, "compareRunsMode": "CHART", **TRAINING}
    return f"#/experiments/{experiment}/runs?{urlencode(words, quote_via=quote)}"


def runs(experiment: str) -> str:
    """Return the address, on the server, of the runs of a study."""
    return f"#/experiments/{experiment}/runs?{urlencode(TRAINING)}"


def experiment_of(plan: Plan, results: Path) -> str | None:
    """Return the id of a sweep's experiment in its store under `results`; None where it cannot be told."""
    uri = store_uri(plan.tracking, results)
    if uri is None:
        return None
    try:
        client = open_store(uri, ours=uri == store_uri({}, results))
        found = client.get_experiment_by_name(fields.experiment(plan))
    except TrackingError:
        return None  # the server says what is wrong with the store
    except store_errors():
        return None
    return None if found is None else str(found.experiment_id)


def study_note(experiment: str) -> str:
    """Return the description of an experiment."""
    return (
        "One run per sweep, with a run per cell below it; beside it one per arm, with its ratios against "
        "the load. "
        f"[Chart: ratio against load by drafter, all sweeps]({chart(experiment)})"
    )
