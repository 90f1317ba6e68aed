"""What a recording is to hold, and which engine writes it: planned before anything starts."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from engines.digest import digest
from engines.registry import engine_named
from engines.spec import EngineConfig
from jobs.workload.conversation import RECORDED, SYNTHETIC, Conversation
from jobs.workload.formats import count_unanswered, load_workload
from jobs.workload.rank import hashed_rank
from jobs.workload.recorded import FORMAT, RecordingHeader, RecordingIdentity
from jobs.workload.tokenizer import tokenizer_for
from orchestrator.errors import ConfigError
from orchestrator.known_keys import OPEN_MAPS
from orchestrator.plan import Cluster, Timeouts
from orchestrator.planning import check_settings, cluster_for, engine_configs
from orchestrator.schema import WorkloadSchema
from orchestrator.secrecy import check_no_secrets
from orchestrator.sweep import Point

_GROUPS = ("engine", "model", "workload", "layout", "cluster", "timeouts", "experiment", "seed")
"""Groups and keys that a recording depends on."""
_USED = ("name", "format", "paths", "limit", "max_output_tokens")
"""Keys of `workload` that it depends on."""
MAX_OUTPUT_TOKENS = 1024
"""Cap of a recorded reply where `workload.max_output_tokens` does not say, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlan:
    """A recording as the user's words ask for it."""

    config: EngineConfig
    """The baseline engine that writes the replies."""
    cluster: Cluster
    """Where it runs."""
    timeouts: Timeouts
    """Patience."""
    conversations: tuple[Conversation, ...]
    """All that the recording is to hold, those with recorded replies too."""
    header: RecordingHeader
    """Header of a new recording."""
    notes: tuple[str, ...] = ()
    """Settings that change nothing here."""


def plan_recording(points: Sequence[Point], *, temperature: float = 0.0) -> RecordPlan:
    """Return what to record, on which engine.

    Args:
        points: The one point that the user's words come to.
        temperature: Sampling temperature; 0 is greedy.

    Raises:
        ConfigError: several points, an engine that may not run, a trace without text, or nothing to record.
        EngineEnvironmentError: the engine's environment is missing.
        WorkloadError: the workload is missing or damaged.
    """
    if len(points) != 1:
        message = (
            f"a recording runs one engine and these words make {len(points)} points; give one value a key"
        )
        raise ConfigError(message)
    if not 0.0 <= temperature <= 2.0:
        message = f"--temperature is {temperature:g}; it lies between 0 (greedy) and 2"
        raise ConfigError(message)
    point = points[0].config
    check_no_secrets(point)
    config = engine_configs(points)[0].baseline()
    refusals = engine_named(config.engine).refusals(config)
    if refusals:
        message = f"engine {config.label} may not run: {'; '.join(refusal.reason for refusal in refusals)}"
        raise ConfigError(message)
    check_settings([config])
    conversations = _conversations(point["workload"], seed=point["seed"])
    emulated = engine_named(config.engine).capabilities.emulated
    limit = point["workload"]["max_output_tokens"]
    header = RecordingHeader(
        format=FORMAT,
        identity=RecordingIdentity(
            source=digest(conversations),
            source_name=point["workload"]["name"],
            source_format=point["workload"]["format"],
            engine=config.engine,
            engine_version=config.version,
            arm=config.digest,
            model=config.model.name,
            model_digest=config.model.digest,
            tokenizer=tokenizer_for(config.model, config.device).digest,
            max_context=config.model.max_context,
            max_output_tokens=MAX_OUTPUT_TOKENS if limit is None else limit,
            temperature=temperature,
            seed=point["seed"],
        ),
        # an emulated engine writes filler, on which acceptance means nothing
        validity=SYNTHETIC if emulated else RECORDED,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        specload=version("specload"),
        concurrency=_concurrency(point["load"].get("concurrency")),
        wanted=len(conversations),
    )
    return RecordPlan(
        config=config,
        cluster=cluster_for(point["cluster"], config.device),
        timeouts=Timeouts(**point["timeouts"]),
        conversations=conversations,
        header=header,
        notes=_ignored(point["workload"]),
    )


def record_command(points: Sequence[Point]) -> str:
    """Return how to record the workload of a sweep's words: what to sweep then, and last the command."""
    point = points[0]
    words = []
    for key, value in point.choices.items():
        group, _, field = key.partition(".")
        if group not in _GROUPS or (group == "workload" and field and field not in _USED):
            continue
        sign = "+" if group == "experiment" else "++" if key.startswith(OPEN_MAPS) else ""
        words.append(shlex.quote(f"{sign}{key}={value}"))
    names = (point.config["workload"]["name"], point.config["model"]["name"])
    file = "-".join(str(name).replace("/", "-") for name in names) + ".jsonl"
    command = " ".join(["specload workload record", *words, "--output", shlex.quote(file)])
    replay = shlex.quote(f"workload.paths=[{file}]")
    return f"then sweep with workload=recorded {replay}. The command is: {command}"


def _ignored(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note on settings of the workload that say how it is replayed: a recording takes all of it."""
    usual = {field.name: field.default for field in dataclasses.fields(WorkloadSchema)}
    keys = [f"workload.{key}" for key in settings if key not in _USED and settings[key] != usual.get(key)]
    if not keys:
        return ()
    return (f"{', '.join(keys)}: for a replay of the recording; nothing here depends on it",)


def _conversations(settings: Any, *, seed: int) -> tuple[Conversation, ...]:
    """Return the conversations of a workload, `workload.limit` of them where it says so, in their order."""
    limit, cap = settings["limit"], settings["max_output_tokens"]
    for name, value in (("limit", limit), ("max_output_tokens", cap)):
        if value is not None and value < 1:
            message = f"workload.{name} is {value}; choose 1 or more, or null"
            raise ConfigError(message)
    paths = [str(Path(path).expanduser().absolute()) for path in settings["paths"]]
    source = load_workload(name=settings["name"], format=settings["format"], paths=paths, unanswered=True)
    found = [entry for entry in source.conversations if isinstance(entry, Conversation)]
    if len(found) < len(source.conversations):
        message = (
            f"workload {source.name!r} is a trace of hashes or lengths: it has no text to reply to, and its "
            "output lengths are recorded already; sweep it as it is"
        )
        raise ConfigError(message)
    if not count_unanswered(found):
        message = f"workload {source.name!r} has a reply in every turn already; sweep it as it is"
        raise ConfigError(message)
    if limit is not None and limit < len(found):
        # the same choice that binding makes under a limit
        ranked = sorted(found, key=lambda entry: hashed_rank(seed, "limit", entry.id))
        chosen = {entry.id for entry in ranked[:limit]}
        found = [entry for entry in found if entry.id in chosen]
    return tuple(found)


def _concurrency(value: Any) -> int:
    """Return `load.concurrency` as one number: the largest where there are several."""
    values = value if isinstance(value, list) else [8 if value is None else value]
    if not values or not all(isinstance(entry, int) and entry >= 1 for entry in values):
        message = f"load.concurrency is {value!r}; a recording needs a number of conversations at a time"
        raise ConfigError(message)
    return int(max(values))
