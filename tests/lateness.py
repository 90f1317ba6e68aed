"""Gates that judge when things happened. A busy machine may fail them, and tests assert no timings."""

from jobs.result import CellResult

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
