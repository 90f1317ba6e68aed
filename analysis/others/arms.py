"""Which server a run was of: as its file tells it, or as its user does."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.others.run import OtherResultsError, OtherRun
from jobs.nouns import are, counted

BASELINE = "none"
_LABEL = re.compile(r"(?:(?P<layout>[^/\s]+)/)?(?P<drafter>[^/\s]+?)(?:-k(?P<k>\d+))?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherArm:
    """One server configuration."""

    drafter: str
    """Method, or whatever its user calls it; `none` for a baseline."""
    k: int = 0
    """Draft length; 0 where not told."""
    layout: str = ""
    flags: str = ""

    @property
    def label(self) -> str:
        """Layout, drafter and K as far as told."""
        name = f"{self.drafter}-k{self.k}" if self.k else self.drafter
        name = f"{self.layout}/{name}" if self.layout else name
        return f"{name} [{self.flags}]" if self.flags else name

    @property
    def pair(self) -> str:
        """What an arm shares with its baseline."""
        return ", ".join(part for part in (self.layout, self.flags) if part) or "the same server"

    @property
    def is_baseline(self) -> bool:
        """Whether it has no drafter."""
        return self.drafter == BASELINE

    @property
    def digest(self) -> str:
        """SHA-256 of what tells it from others."""
        facts = json.dumps([self.layout, self.drafter, self.k, self.flags])
        return hashlib.sha256(facts.encode()).hexdigest()


def parse_arm(label: str) -> OtherArm:
    """Return the arm of a label `LAYOUT/DRAFTER-kK`; layout and K may be left out.

    Raises:
        OtherResultsError: no such label.
    """
    found = _LABEL.fullmatch(label)
    if found is None:
        message = (
            f"{label!r} is no label of an arm: write DRAFTER-kK or LAYOUT/DRAFTER-kK, as in tp2/eagle3-k5"
        )
        raise OtherResultsError(message)
    return OtherArm(drafter=found["drafter"], k=int(found["k"] or 0), layout=found["layout"] or "")


def arms_of(runs: Sequence[OtherRun], told: Mapping[str, OtherArm]) -> list[tuple[OtherRun, OtherArm]]:
    """Return each run with its arm.

    Args:
        runs: of one comparison.
        told: source of a run -> the arm that its user says it is.

    Raises:
        OtherResultsError: runs of which nobody tells what they are, or that were drafted for as a baseline.
    """
    found, silent = [], []
    for run in runs:
        arm = told.get(run.source) or recorded_arm(run)
        if arm is None:
            silent.append(run.source)
        else:
            found.append((run, arm))
    if silent:
        named = f"{', '.join(silent[:3])}{', ...' if len(silent) > 3 else ''}"
        tell = are(len(silent), one="does", many="do")
        message = (
            f"{counted(len(silent), 'run')} {tell} not tell what served them ({named}); say it with "
            "--baseline FILES and --arm LABEL=FILES"
        )
        raise OtherResultsError(message)
    drafted = [run.source for run, arm in found if arm.is_baseline and run.drafts]
    if drafted:
        message = f"{drafted[0]} is given as a baseline, but its server counted drafts: it speculated"
        raise OtherResultsError(message)
    lengths: dict[OtherArm, int] = {}
    for run, arm in found:
        lengths[arm] = max(lengths.get(arm, 0), run.k)
    return [(run, arm if arm.k or arm.is_baseline else replace(arm, k=lengths[arm])) for run, arm in found]


def recorded_arm(run: OtherRun) -> OtherArm | None:
    """Return the arm that a run's file tells; None where it does not."""
    if run.drafter is None:
        return None
    k = 0 if run.drafter == BASELINE else run.k
    return OtherArm(drafter=run.drafter, k=k, layout=run.layout, flags=run.flags)
