"""What `specload recommend` says: ranges of loads, each winner's command, and K by load for its engine."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from analysis.confirmation import Confirmation, confirm_words
from analysis.decision import Decision
from analysis.frame import Sweep
from analysis.recommendation import CONFIRMED, PROVISIONAL, Recommendation
from analysis.section import Section
from analysis.verdict import LOSES, NO_DIFFERENCE, WINS
from engines.errors import EngineConfigError
from orchestrator.decision_view import decision_view, line_to_copy
from orchestrator.deployment import Deployment, recorded, written
from orchestrator.plan import Plan
from orchestrator.scheduling import ScheduledArm, scheduled_arm
from orchestrator.section_tables import section_tables

CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAdvice:
    """K by load, as its engine takes it, and whether it was measured."""

    made: ScheduledArm
    status: str
    """`confirmed`, `provisional` or `contradicted`."""
    deployment: Deployment | None
    fresh: tuple[Confirmation, ...] = ()
    """What fresh blocks say of it, a level each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Everything that is printed."""

    decision: Decision
    """The recommendation in words, and what is undecided."""
    notes: tuple[str, ...]
    """What has to be said with it."""
    sections: tuple[Section, ...]
    """The recommendation as a table first, which is for programs: people read the decision."""
    deployments: tuple[Deployment, ...]
    """Of every arm that is recommended somewhere."""
    schedules: tuple[ScheduleAdvice, ...]
    confirm: str
    """Command that measures what is provisional again; empty where nothing is."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "decision": asdict(self.decision),
            "sections": [section.to_dict() for section in self.sections],
            "deployments": [deployment.to_dict() for deployment in self.deployments],
            "schedules": [_schedule_dict(entry) for entry in self.schedules],
            "confirm": self.confirm,
        }


def advise(
    plan: Plan, sweep: Sweep, found: Recommendation, decided: Decision, sections: Sequence[Section]
) -> Advice:
    """Return what to print.

    Args:
        plan: of the sweep.
        sweep: with its cells.
        found: what is recommended.
        decided: the same in words.
        sections: the recommendation's, then others in the order in which they are shown.
    """
    arms = dict.fromkeys(part.candidate.arm for part in found.ranges if part.candidate is not None)
    deployments = [recorded(sweep.directory, sweep.results, plan.arm(arm).config) for arm in arms]
    schedules = tuple(_advice(sweep, found, entry) for entry in _made(plan, sweep, found))
    provisional = any(found.status(part) == PROVISIONAL for part in found.ranges if part.candidate)
    provisional = provisional or any(entry.status == PROVISIONAL for entry in schedules)
    again = confirm_words(sweep.directory, found.confirmations)
    return Advice(
        decision=decided,
        notes=found.notes,
        sections=tuple(sections),
        deployments=tuple(entry for entry in deployments if entry is not None),
        schedules=schedules,
        confirm=again if provisional else "",
    )


def _made(plan: Plan, sweep: Sweep, found: Recommendation) -> list[ScheduledArm]:
    return [scheduled_arm(plan, schedule, sweep.results) for schedule in found.schedules]


def _advice(sweep: Sweep, found: Recommendation, made: ScheduledArm) -> ScheduleAdvice:
    if made.arm is None:
        return ScheduleAdvice(made=made, status="", deployment=None)
    fresh = tuple(entry for entry in found.confirmations if entry.arm == made.arm.digest)
    config = made.arm.config
    try:
        deployment = recorded(sweep.directory, sweep.results, config) or written(config)
    except EngineConfigError:
        deployment = None
    return ScheduleAdvice(made=made, status=status_of(made, fresh), deployment=deployment, fresh=fresh)


def status_of(made: ScheduledArm, fresh: Sequence[Confirmation]) -> str:
    """Return whether fresh blocks confirm a schedule.

    It has to win at the probe of each draft length above 0, and to lose at none.
    """
    drafting = sum(step.k > 0 for step in made.schedule.steps)
    if any(entry.verdict == LOSES for entry in fresh):
        return CONTRADICTED
    wins = sum(entry.verdict == WINS for entry in fresh)
    alike = sum(entry.verdict == NO_DIFFERENCE for entry in fresh)
    if len(fresh) == len(made.schedule.steps) and wins >= drafting:
        return CONFIRMED
    return CONTRADICTED if alike > len(made.schedule.steps) - drafting else PROVISIONAL


def advice_view(advice: Advice, *, explain: bool = False) -> RenderableType:
    """Return the advice for a terminal; `explain` says why, and defines the columns of the tables."""
    parts: list[RenderableType] = [*decision_view(advice.decision, advice.notes, explain=explain), Text("")]
    parts.append(section_tables(advice.sections[1:], explain=explain))
    for deployment in advice.deployments:
        parts += [Text(f"{deployment.label}, as it was measured:", style="bold"), *_command(deployment)]
    for entry in advice.schedules:
        parts += _schedule(entry)
    if advice.confirm:
        parts.append(Text("To measure what is provisional again in fresh blocks:"))
        parts.append(line_to_copy(advice.confirm))
    return Group(*parts)


def _command(deployment: Deployment) -> list[RenderableType]:
    told: list[RenderableType] = [line_to_copy(deployment.line)]
    for name, text in deployment.files.items():
        told.append(line_to_copy(f"$FOLDER/{name}: {' '.join(text.split())}"))
    places = ", ".join(f"${name}: {meaning}" for name, meaning in deployment.placeholders.items())
    return [*told, Text(f"  ({places})"), Text("")] if places else [*told, Text("")]


def _schedule(entry: ScheduleAdvice) -> list[RenderableType]:
    schedule = entry.made.schedule
    head = f"{schedule.family} with K by load"
    steps = [
        f"K={step.k} from {step.low:.3g}" + (f" to {step.high:.3g}" if step.high is not None else " on")
        for step in schedule.steps
    ]
    parts: list[RenderableType] = [
        Text(f"{head}{f', {entry.status}' if entry.status else ''}:", style="bold"),
        Text(f"  concurrency over the slice: {', '.join(steps)}"),
    ]
    sizes = [
        f"{part.first} to {part.last}: K={part.k}" if part.last else f"{part.first} on: K={part.k}"
        for part in entry.made.ranges
    ]
    parts.append(Text(f"  running requests of one engine: {', '.join(sizes)}"))
    last = schedule.steps[-1].levels[-1]
    parts.append(Text(f"  above {last:g}, the highest level tried, the last K is carried on, untried"))
    if entry.made.refused:
        parts.append(Text(f"  the engine does not take it: {entry.made.refused}"))
    parts += [Text(f"  {item.text}") for item in entry.fresh]
    if entry.deployment is not None:
        parts += _command(entry.deployment)
    return parts


def _schedule_dict(entry: ScheduleAdvice) -> Mapping[str, Any]:
    schedule = entry.made.schedule
    return {
        "family": schedule.family,
        "layout": schedule.layout,
        "status": entry.status,
        "refused": entry.made.refused,
        "by_load": [
            {"from": step.low, "to": step.high, "k": step.k, "levels": list(step.levels)}
            for step in schedule.steps
        ],
        "by_running_requests": [
            {"first": part.first, "last": part.last, "k": part.k} for part in entry.made.ranges
        ],
        "fresh": [{"at": item.at, "verdict": item.verdict, "text": item.text} for item in entry.fresh],
        "deployment": None if entry.deployment is None else entry.deployment.to_dict(),
    }
