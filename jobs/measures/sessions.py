"""Sessions: whole conversations as the people behind them saw them.

A session is one conversation in one epoch. It counts when every turn of it was answered; one with a failed or
missing turn has no session time.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from jobs.measures.timing import NS_PER_S, Floats, origin, user_speed_tok_s
from jobs.replay.data import ReplayData
from jobs.replay.job import RequestRecord


def complete_sessions(
    data: ReplayData, turns: Mapping[str, int] | None = None
) -> tuple[tuple[RequestRecord, ...], ...]:
    """Return the requests of each session whose turns were all answered, in order of dispatch.

    Args:
        data: What was replayed.
        turns: Turns of each conversation by its id; None takes a session for as long as its requests say.
    """
    sessions: dict[tuple[str, int], list[RequestRecord]] = {}
    for request in data.requests:
        sessions.setdefault((request.conversation, request.epoch), []).append(request)
    return tuple(
        tuple(requests)
        for (conversation, _), requests in sessions.items()
        if all(request.error is None and request.last is not None for request in requests)
        and (turns is None or len(requests) == turns.get(conversation, len(requests)))
    )


def session_seconds(sessions: Sequence[Sequence[RequestRecord]], *, scheduled: bool = False) -> Floats:
    """Return the session times: first origin to last token, think times between turns included.

    The origin of the first request is its dispatch, or in an open loop (`scheduled`) the arrival.
    """
    spans = [
        max(request.last or 0 for request in requests)
        - min(origin(request, scheduled=scheduled) for request in requests)
        for requests in sessions
    ]
    return np.asarray(spans, dtype=np.float64) / NS_PER_S


def session_speeds_tok_s(sessions: Sequence[Sequence[RequestRecord]]) -> Floats:
    """Return each session's user speed; a session whose answers all came in one chunk has none."""
    speeds = [user_speed_tok_s(requests) for requests in sessions]
    return np.asarray([speed for speed in speeds if speed is not None], dtype=np.float64)
