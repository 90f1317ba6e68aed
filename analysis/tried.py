"""Levels at which a choice between arms can be made.

A search measures each arm where that arm's own curve is looked for, and its baseline beside it. At a level
that it placed for some arms only, the others are not worse: they were not asked.
"""

from collections.abc import Collection

import pandas as pd

from jobs.result import SEARCH


def asked_all(cells: pd.DataFrame, arms: Collection[str], level: float) -> bool:
    """Return whether a level was planned for the arms, or every one of them was tried at it.

    Args:
        cells: `cells_frame` of a sweep.
        arms: digests.
        level: load level.
    """
    here = cells[cells["level"].eq(level) & cells["arm"].isin(list(arms))]
    return bool(here["kind"].ne(SEARCH).any()) or set(arms) <= set(here["arm"])
