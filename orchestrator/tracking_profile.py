"""A profile in MLflow: files on the run of the sweep that its arm comes from."""

from pathlib import Path

from orchestrator import tracking_fields as fields
from orchestrator.errors import TrackingError
from orchestrator.plan import Plan
from orchestrator.profile_plan import FOLDER
from orchestrator.tracking_store import SQLITE, first_line, open_store, store_errors, store_uri


def attach_profile(plan: Plan, results: Path, folder: Path) -> str:
    """Hang the files of a profile's folder on its sweep's run, and say what came of it.

    A store that fails costs a sentence: the folder has the profile.
    """
    uri = store_uri(plan.tracking, results)
    if uri is None:
        return "tracking is disabled: the profile is in its folder alone"
    if uri.startswith(SQLITE) and not Path(uri.removeprefix(SQLITE)).is_file():
        return f"there is no MLflow store {uri}: the profile is in its folder alone"
    try:
        client = open_store(uri, ours=uri == store_uri({}, results.resolve()))
        experiment = client.get_experiment_by_name(fields.experiment(plan))
        query = f"tags.`{fields.SWEEP_ID}` = '{plan.sweep}' AND tags.`{fields.KIND}` = 'sweep'"
        runs = [] if experiment is None else client.search_runs([experiment.experiment_id], query)
        if not runs:
            return f"MLflow store {uri} does not know the sweep: the profile is in its folder alone"
        client.log_artifacts(
            runs[0].info.run_id, str(folder), artifact_path=f"{FOLDER}/{folder.parent.name}/{folder.name}"
        )
    except TrackingError as error:
        return f"{first_line(error)}: the profile is in its folder alone"
    except store_errors() as error:
        return f"MLflow store {uri} failed ({first_line(error)}): the profile is in its folder alone"
    return f"MLflow: on the sweep's run, under {FOLDER}"
