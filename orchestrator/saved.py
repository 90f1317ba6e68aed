"""Saved plans: `plan.json` read back, and the frozen workload beside it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from jobs.workload.token_file import digest_of, read
from jobs.workload.tokens import TokenWorkload
from orchestrator.binding import rebind
from orchestrator.errors import ConfigError
from orchestrator.goals import check_objective, check_price
from orchestrator.ledger import PLAN, WORKLOAD
from orchestrator.plan import Plan
from orchestrator.remote import RemoteFolder
from orchestrator.results_root import ResultsRoot, is_url
from orchestrator.secrecy import check_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A saved plan, the workload it was made with, and where its results belong."""

    plan: Plan
    workload: TokenWorkload
    root: ResultsRoot

    @classmethod
    def at(cls, place: str, *, results: str | None, work: Path | None) -> Self:
        """Read the plan at a path or URL; its results go to `results`, or where it lies itself.

        Raises:
            ConfigError: missing, damaged or changed by hand, or its workload is not the one it names.
            WorkloadError: a file of the workload is missing or damaged.
        """
        if is_url(place):
            return cls._at_url(place, results=results, work=work)
        path = Path(place)
        plan = read_plan(path)
        folder = path if path.is_dir() else path.parent
        root = ResultsRoot.of(results or str(_home(folder, plan)), work=work)
        return cls(plan=plan, workload=_workload(folder, plan), root=root)

    @classmethod
    def _at_url(cls, place: str, *, results: str | None, work: Path | None) -> Self:
        check_url("--from", place)
        url = place.removesuffix(f"/{PLAN}").rstrip("/")
        root = ResultsRoot.of(results or url.rpartition("/")[0], work=work)
        remote = RemoteFolder.at(url)
        plan = _plan_of(remote.wanted(PLAN), f"{url}/{PLAN}")
        folder = root.folder / plan.sweep
        if not (folder / WORKLOAD).exists() and WORKLOAD in remote.files():
            staging = folder / f"{WORKLOAD}.tmp"
            remote.get(WORKLOAD, staging)
            staging.replace(folder / WORKLOAD)
        return cls(plan=plan, workload=_workload(folder, plan), root=root)


def read_plan(path: Path) -> Plan:
    """Return the plan in a `plan.json`, or in the sweep's folder.

    Raises:
        ConfigError: missing, damaged, of another version, or changed by hand.
    """
    file = path
    try:
        file = path / PLAN if path.is_dir() else path
        content = file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        why = error.strerror if isinstance(error, OSError) else error
        message = f"{str(file)!r} cannot be read ({why}); give results/SWEEP/plan.json of an earlier sweep"
        raise ConfigError(message) from error
    return _plan_of(content, str(file))


def _plan_of(content: bytes, where: str) -> Plan:
    try:
        plan = Plan.from_dict(json.loads(content.decode("utf-8")))
        _check_reading(plan)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{where} is no plan of this version ({type(error).__name__}: {error})"
        raise ConfigError(message) from error
    except ValueError as error:
        message = f"{where} cannot be used: {error}"
        raise ConfigError(message) from error
    return plan


def _check_reading(plan: Plan) -> None:
    """Refuse values that are no part of the digest, which cannot tell that they were changed by hand."""
    known = isinstance(plan.threshold, int | float) and plan.threshold >= 0.0
    if not known or not isinstance(plan.tracking, Mapping):
        wrong = {"tracking": plan.tracking} if known else {"threshold": plan.threshold}
        message = f"it has {wrong}"
        raise ValueError(message)
    check_objective(plan.objective, plan.slo)
    check_price(plan.gpu_hour_price)


def _workload(folder: Path, plan: Plan) -> TokenWorkload:
    """Return the frozen workload beside the plan, or else make it again from its files."""
    file = folder / WORKLOAD
    if not file.exists():
        return rebind(plan)
    workload = read(file)
    found = digest_of(workload)
    if found != plan.workload.digest:
        message = (
            f"{file} is not the workload of its plan (digest {found[:10]}, the plan names "
            f"{plan.workload.digest[:10]}); remove the file to make it again from {plan.workload.name!r}"
        )
        raise ConfigError(message)
    # in memory, like one that was just made: it travels to the nodes, and an open file cannot
    return replace(workload, conversations=tuple(workload.conversations))


def _home(folder: Path, plan: Plan) -> Path:
    """Return the results folder that a saved plan lies in, or the usual one for a plan from elsewhere."""
    folder = folder.resolve()
    return folder.parent if folder.name == plan.sweep else Path("results")
