"""What a profile leaves behind: `profile.json` and its picture, in the folder of its sweep and in MLflow."""

from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from analysis.breakdown_figure import Bar, draw_breakdown
from jobs.nouns import counted
from orchestrator.durable import replace_json
from orchestrator.errors import ResultsWriteError
from orchestrator.plan import Plan
from orchestrator.profile import TRACE, ProfileResult
from orchestrator.profile_plan import ProfilePlan

JSON = "profile.json"
PICTURES = ("profile.svg", "profile.png")
SCHEMA = 1
NOT_THROUGHPUT = "a run of its own for shares of a step: no throughput is quoted from it"


def write_profile(folder: Path, plan: Plan, profile: ProfilePlan, result: ProfileResult) -> None:
    """Write the figures and their picture into `folder`; an earlier profile of the same arm is replaced.

    Raises:
        ResultsWriteError: they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_json(folder / JSON, content(plan, profile, result))
        bars = [
            Bar(label=entry.engine.label, parts=[(part.name, part.ms) for part in entry.breakdown.parts])
            for entry in result.engines
        ]
        draw_breakdown(
            bars,
            [folder / name for name in PICTURES],
            title=heading(profile, result),
            notes=[*result.notes, NOT_THROUGHPUT],
        )
    except OSError as error:
        message = f"the profile cannot be written to {folder} ({error}); set results=FOLDER to one that can"
        raise ResultsWriteError(message) from error


def heading(profile: ProfilePlan, result: ProfileResult) -> str:
    """Return what the profile is of, in a line."""
    first = result.engines[0].engine.timed[0]
    arm = profile.arms[0]
    emulated = "EMULATED, " if arm.device == "emulated" else ""
    source = "" if result.source == TRACE else "ESTIMATE, "
    return (
        f"{emulated}{source}decode step of {arm.model.name} on {arm.engine} {arm.version}: "
        f"{counted(profile.concurrency, 'request')} at about {first.context:.0f} tokens each"
    )


def content(plan: Plan, profile: ProfilePlan, result: ProfileResult) -> dict[str, Any]:
    """Return the profile as plain data."""
    return {
        "schema": SCHEMA,
        "source": result.source,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "specload": version("specload"),
        "sweep": plan.sweep,
        "workload": {"name": plan.workload.name, "digest": plan.workload.digest},
        "arms": [{"label": arm.label, "digest": arm.digest, "config": asdict(arm)} for arm in profile.arms],
        "concurrency": profile.concurrency,
        "contexts": list(profile.contexts),
        "steps": profile.steps,
        "repeats": profile.repeats,
        "engines": [
            {
                **asdict(entry.engine),
                "inflation": entry.engine.inflation,
                "step_ms": entry.breakdown.step_ms,
                "parts": [asdict(part) for part in entry.breakdown.parts],
            }
            for entry in result.engines
        ],
        "others": [asdict(other) for other in result.others],
        "notes": list(result.notes),
        "use": NOT_THROUGHPUT,
    }
