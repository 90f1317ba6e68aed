"""From conversations to the frozen token workload that every arm replays."""

from collections.abc import Sequence

from jobs.errors import WorkloadError
from jobs.workload.conversation import Conversation, Workload
from jobs.workload.order import hashed_rank
from jobs.workload.token_file import digest_of, read, write
from jobs.workload.tokenizer import Tokenizer
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

__all__ = ["bind", "digest_of", "read", "write"]


def bind(
    workload: Workload,
    tokenizer: Tokenizer,
    *,
    max_context: int,
    limit: int | None = None,
    max_output_tokens: int | None = None,
    seed: int = 0,
) -> TokenWorkload:
    """Render every turn with the target's own template; the history is the recorded replies.

    Args:
        workload: Conversations as text.
        tokenizer: Tokenizer and chat template of the target.
        max_context: Longest prompt plus output in tokens; longer ones are dropped, with the reason.
        limit: Keep so many of those that fit, chosen by a hash of `seed` and the id; None for all.
        max_output_tokens: Cap of the pinned output length; None pins to the recorded one.
        seed: Seed of the choice under `limit`.

    Raises:
        WorkloadError: nothing fits, or a limit below 1.
    """
    for name, value in (("limit", limit), ("max_output_tokens", max_output_tokens)):
        if value is not None and value < 1:
            message = f"workload.{name} is {value}; choose 1 or more, or null for no limit"
            raise WorkloadError(message)
    indices: Sequence[int] = range(len(workload.conversations))
    if limit is not None:
        indices = sorted(indices, key=lambda i: hashed_rank(seed, "limit", workload.conversations[i].id))
    kept: dict[int, TokenConversation] = {}
    dropped: list[tuple[str, str]] = []
    longest: list[int] = []
    for index in indices:
        if limit is not None and len(kept) == limit:
            break
        conversation = workload.conversations[index]
        bound = _bind(conversation, tokenizer, max_output_tokens)
        needed = max(turn.prompt_tokens + turn.output_tokens for turn in bound.turns)
        longest.append(needed)
        if needed > max_context:
            dropped.append(
                (conversation.id, f"needs {needed} tokens; the model's context holds {max_context}")
            )
        else:
            kept[index] = bound
    if not kept:
        message = (
            f"workload {workload.name!r}: none of its {len(longest)} conversations fits the model's "
            f"context of {max_context} tokens; they need {min(longest, default=0)} to "
            f"{max(longest, default=0)}: raise model.max_context, or choose shorter conversations"
        )
        raise WorkloadError(message)
    return TokenWorkload(
        name=workload.name,
        conversations=tuple(kept[index] for index in sorted(kept)),
        validity=workload.validity,
        tokenizer=tokenizer.digest,
        dropped=tuple(dropped),
    )


def _bind(conversation: Conversation, tokenizer: Tokenizer, cap: int | None) -> TokenConversation:
    history: list[tuple[str, str]] = []
    previous: list[int] = []
    turns: list[TokenTurn] = []
    for turn in conversation.turns:
        history.extend((message.role, message.content) for message in turn.messages)
        prompt = tokenizer.render(history)
        keep = _common(previous, prompt)
        output = max(1, len(tokenizer.encode(turn.reply)))
        if cap is not None:
            output = min(output, cap)
        turns.append(TokenTurn(keep=keep, suffix=tuple(prompt[keep:]), output_tokens=output))
        history.append(("assistant", turn.reply))
        previous = prompt
    return TokenConversation(id=conversation.id, turns=tuple(turns))


def _common(before: list[int], after: list[int]) -> int:
    """Return the length of the common prefix."""
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        if old != new:
            return index
    return min(len(before), len(after))
