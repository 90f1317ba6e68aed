"""Tries of a cell: which are measured again because a user asks for it, and what a new one replaces.

A cell has an outcome for each try, and the last one counts. What is tried again by itself is in `retries.py`.
This module is read before Ray is: nothing in it may import what imports Ray.
"""

from collections.abc import Collection, Iterable, Mapping

from jobs.nouns import counted
from jobs.result import FAILED, INFEASIBLE, INVALID, MEASURED, TREATMENT, CellResult

_Stratum = tuple[tuple[int, int, str, str], int]
"""What a treatment shares with its baselines: (round, block, pair key, load level), and the segment."""
ASKABLE = (FAILED, INVALID)
"""Outcomes that a user may ask to have measured again, whatever their causes."""


def asked_again(results: Iterable[CellResult], outcomes: Collection[str]) -> set[str]:
    """Return the ids of the cells that are measured again where a user asks for cells of these outcomes.

    These are the treatments that ended so, and those whose pair is lost because a baseline of it did: no
    baseline of their segment was measured. A baseline beside another one that was measured stays as it is:
    the pair stands. A new segment has baselines of its own, so of them only those are named here that no
    treatment stands beside (a sweep of baselines alone).

    Args:
        results: the last outcome of every cell.
        outcomes: some of `ASKABLE`.
    """
    strata: dict[_Stratum, list[CellResult]] = {}
    for result in results:
        if result.outcome != INFEASIBLE:  # of no block, though it is numbered 0
            strata.setdefault(_stratum(result), []).append(result)
    found: set[str] = set()
    for cells in strata.values():
        treatments = [cell for cell in cells if cell.role == TREATMENT]
        baselines = [cell for cell in cells if cell.role != TREATMENT]
        bad = [cell for cell in baselines if cell.outcome in outcomes]
        lost = bool(bad) and all(cell.outcome != MEASURED for cell in baselines)
        found |= {
            cell.cell
            for cell in treatments
            if cell.outcome in outcomes or (lost and cell.outcome == MEASURED)
        }
        if not treatments:
            found |= {cell.cell for cell in bad}
    return found


def retry_words(outcomes: Mapping[str, int], command: str) -> str:
    """Return how the cells of a sweep that have no measurement that counts are measured again; or nothing.

    Args:
        outcomes: cells by outcome.
        command: what goes on with the sweep.
    """
    bad = [outcome for outcome in ASKABLE if outcomes.get(outcome)]
    if not bad:
        return ""
    cells = counted(sum(outcomes[outcome] for outcome in bad), f"{' or '.join(bad)} cell")
    return f"measure {cells} again: add --retry {','.join(bad)} to {command}"


def replaced_by(result: CellResult, results: Iterable[CellResult]) -> set[str]:
    """Return the ids of the recorded cells that a new one takes the place of.

    A treatment takes that of its last try. With the last treatment of a segment at a level go the baselines
    there that were not measured: they hold no pair any more, and the new segment has its own.
    """
    if result.outcome == INFEASIBLE:
        return set()
    ran = [each for each in results if each.outcome != INFEASIBLE]  # the others are of no block
    rivals = [each for each in ran if _stratum(each)[0] == _stratum(result)[0]]
    former = {each.cell for each in rivals if each.cell == result.cell or _again(each, result)}
    alive = {each.segment for each in rivals if each.role == TREATMENT and each.cell not in former}
    return former | {
        each.cell
        for each in rivals
        if each.role != TREATMENT
        and each.outcome != MEASURED
        and each.segment not in {result.segment, *alive}
    }


def replaced_among(results: Iterable[CellResult]) -> dict[str, int]:
    """Return which recorded cells a later one took the place of: id -> sequence of the later one.

    A copy of a sweep's folder can hold both: one is copied before the other, and renaming is no copying.
    """
    found: dict[str, int] = {}
    strata: dict[tuple[int, int, str, str], list[CellResult]] = {}
    for result in sorted(results, key=lambda each: each.sequence):
        known = strata.setdefault(_stratum(result)[0], [])
        former = replaced_by(result, known)
        found |= dict.fromkeys(former, result.sequence)
        known[:] = [*(each for each in known if each.cell not in former), result]
    return found


def _stratum(result: CellResult) -> _Stratum:
    pair = str(result.identity.get("pair_key"))
    return (result.round, result.block, pair, result.load), result.segment


def _again(former: CellResult, result: CellResult) -> bool:
    return former.role == result.role == TREATMENT and former.arm == result.arm
