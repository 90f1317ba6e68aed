"""Two sweeps compared, in one value: what changed, what each recommends, what else differs, and caveats."""

from dataclasses import dataclass
from typing import Any

from analysis.compare.absolutes import absolutes
from analysis.compare.advice import advice
from analysis.compare.crossings import crossings
from analysis.compare.differences import Difference, differences_section, find_differences
from analysis.compare.explanation import explanation, fits
from analysis.compare.identity import Matching, identities, match
from analysis.compare.ratios import RatioChange, common_places, ratio_changes, ratios_section
from analysis.compare.refusals import (
    ComparisonError,
    check_comparable,
    no_arm,
    no_drafter,
    no_level,
    objective_of,
    refused,
)
from analysis.compare.side import Side, prepare
from analysis.compare.words import caveats, findings
from analysis.contrasts import counted
from analysis.frame import Sweep
from analysis.section import Section


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What two sweeps say beside each other."""

    a: Side
    b: Side
    objective: str
    threshold: float
    """The larger practical threshold of the two, as a share."""
    changes: tuple[RatioChange, ...]
    """By arm and level."""
    differences: tuple[Difference, ...]
    matching: Matching
    findings: tuple[str, ...]
    """What the comparison shows, in sentences; the first says it all in one."""
    caveats: tuple[str, ...]
    sections: tuple[Section, ...]
    """In the order of reading: ratios, recommendations, crossings, explanation, fits, absolutes,
    differences."""

    def section(self, name: str) -> Section:
        """Return a section by its name (`KeyError` if there is none)."""
        return {section.name: section for section in self.sections}[name]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "a": str(self.a.sweep.directory),
            "b": str(self.b.sweep.directory),
            "objective": self.objective,
            "threshold": self.threshold,
            "findings": list(self.findings),
            "caveats": list(self.caveats),
            "only_in": {
                letter: [{"arm": arm.label, "why": why} for arm, why in arms]
                for letter, arms in self.matching.only.items()
            },
            "sections": [section.to_dict() for section in self.sections],
        }


def compare_sweeps(
    a: Sweep, b: Sweep, *, objective: str | None = None, threshold: float | None = None
) -> Comparison:
    """Compare two sweeps: B over A.

    Args:
        a: what is compared with, as the earlier version or the known hardware.
        b: what is compared.
        objective: a name in `OBJECTIVES`; that of both plans where None.
        threshold: practical threshold as a share; the larger of both plans' where None.

    Raises:
        ComparisonError: sweeps that cannot be compared; the message names each key and both values.
    """
    objective = objective_of(a, b, objective)
    check_comparable(a, b, objective=objective)
    matching = match(*(identities(counted(sweep.cells), sweep) for sweep in (a, b)))
    if not matching.both:
        raise ComparisonError(refused(a, b, [no_arm(matching)]))
    pairs = matching.treatments
    if not pairs:
        raise ComparisonError(refused(a, b, [no_drafter(matching)]))
    practical = max(a.threshold, b.threshold) if threshold is None else threshold
    sides = [
        prepare(letter, sweep, objective=objective, threshold=practical)
        for letter, sweep in (("A", a), ("B", b))
    ]
    first, second = sides
    if not any(common_places(pair, first, second) for pair in pairs):
        raise ComparisonError(refused(a, b, [no_level(first, second)]))
    changes = ratio_changes(pairs, first, second, objective=objective, threshold=practical)
    found = find_differences(matching.both, first, second)
    served = advice(matching.both, first, second, objective=objective)
    sections = (
        ratios_section(changes, objective=objective),
        served,
        crossings(pairs, first, second, objective=objective),
        explanation(changes, first, second),
        fits(pairs, first, second),
        absolutes(matching.both, first, second, objective=objective, threshold=practical),
        differences_section(found),
    )
    return Comparison(
        a=first,
        b=second,
        objective=objective,
        threshold=practical,
        changes=tuple(changes),
        differences=found,
        matching=matching,
        findings=findings(changes, served, objective),
        caveats=caveats(changes, found, matching, first, second),
        sections=sections,
    )
