"""Gates that judge when things happened. A busy machine may fail them, and tests assert no timings."""

from collections.abc import Sequence

from jobs.result import INVALID, MEASURED, CellResult

LATENESS = {
    "client_cpu",
    "emulator_pace",
    "in_flight_cap",
    "loop_lag",
    "occupancy",
    "open_window",
    "schedule_lag",
    "send_lag",
}


def broken(result: CellResult) -> dict[str, str]:
    """Return the messages of a cell's failed gates, but for those of lateness."""
    return {g.name: g.message for g in result.gates if g.failed and g.name not in LATENESS}


def late(result: CellResult) -> bool:
    """Whether a cell does not count because the machine was busy."""
    return result.outcome == INVALID and result.cause in LATENESS


def played(result: CellResult) -> bool:
    """Whether a cell was measured, or nothing but a busy machine kept it from that."""
    return result.outcome == MEASURED or late(result)


def ended(code: int, said: str, results: Sequence[CellResult]) -> bool:
    """Whether a sweep with this exit code ran to its end.

    The code is 0, or 1 where no cell was measured, as it says: on a machine that is busy enough all are late.
    """
    lost = not any(result.outcome == MEASURED for result in results) and any(map(late, results))
    return code == 0 or (code == 1 and "no cell of" in said and lost)
