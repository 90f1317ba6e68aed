"""Addresses of MLflow's own UI: the views of a study and of a sweep that nobody should have to set up."""

from urllib.parse import quote, urlencode

from orchestrator import tracking_fields as fields
from orchestrator.tracking_curves import CURVE

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


def study_note(experiment: str) -> str:
    """Return the description of an experiment."""
    return (
        "One run per sweep, with a run per cell below it; beside it one per arm, with its ratios against "
        "the load. "
        f"[Chart: ratio against load by drafter, all sweeps]({chart(experiment)})"
    )
