"""The JSON body of a request: token ids, pinned length, seed and salt."""

from collections.abc import Sequence

import msgspec

from engines.digest import seed_of
from jobs.replay.job import ReplayJob
from jobs.workload.tokens import TokenTurn

_ENCODER = msgspec.json.Encoder()


def request_body(
    job: ReplayJob, prompt: Sequence[int], turn: TokenTurn, *, conversation: str, epoch: int, number: int
) -> bytes:
    """Return the body of turn `number` of a conversation in an epoch.

    The sampling seed depends on the request's place in the workload and nothing else, so all arms draw alike.
    Each epoch has a cache salt of its own: a repeated conversation meets no cache of its first time.
    """
    body: dict[str, object] = {
        "model": job.model,
        "prompt": prompt,
        "max_tokens": turn.output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "seed": seed_of(job.seed, conversation, epoch, number),
    }
    if job.salt is not None:
        body["cache_salt"] = f"{job.salt}-{epoch}"
    body.update(job.request_options)
    return _ENCODER.encode(body)
