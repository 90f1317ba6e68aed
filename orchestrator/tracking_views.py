"""Addresses of MLflow's own UI: the views of a study and of a sweep that nobody should have to set up."""

from urllib.parse import quote, urlencode

from orchestrator import tracking_fields as fields
from orchestrator.tracking_curves import CURVE

KIND = {"mlflow.experimentKind": "custom_model_development"}
"""Tag of an experiment: its page begins with runs, and does not ask what kind it is."""


def chart(experiment: str, sweep: str | None = None) -> str:
    """Return the address, on the server, of the charts of ratio against load: of a sweep, or of a study."""
    return _runs(experiment, f"tags.`{fields.KIND}` = '{CURVE}'", sweep, compareRunsMode="CHART")


def table(experiment: str, sweep: str) -> str:
    """Return the address, on the server, of the table of a sweep's cells."""
    return _runs(experiment, f"tags.`{fields.KIND}` = 'cell'", sweep)


def sweep_views(experiment: str, sweep: str) -> tuple[tuple[str, str], ...]:
    """Return (text, address) of what a sweep's description links to."""
    return (
        ("Chart: ratio against load by drafter", chart(experiment, sweep)),
        ("Table: all cells", table(experiment, sweep)),
    )


def study_note(experiment: str) -> str:
    """Return the description of an experiment."""
    return (
        "One run per sweep; below it one per arm with its ratios against the load, and one per cell. "
        f"[Chart: ratio against load by drafter, all sweeps]({chart(experiment)})"
    )


def _runs(experiment: str, query: str, sweep: str | None, **state: str) -> str:
    if sweep is not None:
        query += f" AND tags.`{fields.SWEEP_ID}` = '{sweep}'"
    words = urlencode({"searchFilter": query, **state}, quote_via=quote)
    return f"#/experiments/{experiment}/runs?{words}"
