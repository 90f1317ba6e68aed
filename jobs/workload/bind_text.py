"""Binding text: every turn rendered with the target's own template, after the recorded history."""

from array import array
from collections.abc import Sequence

from jobs.workload.bound import Bound, common_prefix
from jobs.workload.conversation import Conversation, Message, Turn
from jobs.workload.policies import TRUNCATE, Policies
from jobs.workload.tokenizer import Tokenizer
from jobs.workload.tokens import TokenConversation, TokenTurn

SYSTEM = ("system", "developer")
"""Roles whose messages at the beginning of a conversation are never cut."""


def bind_text(
    conversation: Conversation, tokenizer: Tokenizer, policies: Policies, *, max_context: int
) -> Bound:
    """Return `conversation` in tokens.

    Under `truncate_oldest`, a turn that is longer than the context loses its oldest messages after the system
    prompt: as few as needed, and always up to a user message, so that what is left is a dialogue again. The
    messages of the turn itself are never cut.
    """
    history: list[Message] = []
    previous: list[int] = []
    turns: list[TokenTurn] = []
    needed = cut_turns = cut_tokens = capped = silent = known = 0
    played = conversation.turns[: policies.max_turns]
    for number, turn in enumerate(played):
        assert turn.reply is not None  # the caller has refused workloads without replies
        start = len(history)
        history.extend(turn.messages)
        recorded = _recorded(turn, tokenizer)
        output = policies.output_of(recorded)
        capped += policies.max_output_tokens is not None and output < recorded
        prompt = _render(tokenizer, history)
        if policies.fit == TRUNCATE and len(prompt) + output > max_context:
            shorter = _truncated(tokenizer, history, start, max_context - output)
            cut_turns += shorter is not None
            cut_tokens += 0 if shorter is None else len(prompt) - len(shorter)
            prompt = prompt if shorter is None else shorter
        needed = max(needed, len(prompt) + output)
        keep = common_prefix(previous, prompt)
        gap = policies.gap_of(turn.gap) if number else None
        known += number > 0 and turn.gap is not None
        silent += number > 0 and turn.gap is None
        turns.append(TokenTurn(keep=keep, suffix=array("I", prompt[keep:]), output_tokens=output, gap=gap))
        history.append(Message(role="assistant", content=turn.reply))
        previous = prompt
    return Bound(
        conversation=TokenConversation(id=conversation.id, turns=tuple(turns), start=conversation.start),
        needed=needed,
        refusal=_refusal(needed, max_context, policies),
        cut_turns=cut_turns,
        cut_tokens=cut_tokens,
        late_turns=len(conversation.turns) - len(played),
        capped_turns=capped,
        silent_gaps=silent,
        gaps=known,
    )


def _recorded(turn: Turn, tokenizer: Tokenizer) -> int:
    if turn.output_tokens is not None:
        return turn.output_tokens
    return len(tokenizer.encode(turn.reply or ""))


def _render(tokenizer: Tokenizer, messages: Sequence[Message]) -> list[int]:
    return tokenizer.render([(message.role, message.content) for message in messages])


def _truncated(tokenizer: Tokenizer, history: Sequence[Message], start: int, budget: int) -> list[int] | None:
    """Return the longest prompt of at most `budget` tokens that ends with history[start:], or None."""
    head = next((i for i, message in enumerate(history) if message.role not in SYSTEM), len(history))
    cuts = [i for i in range(head + 1, start) if history[i].role == "user"]
    cuts.append(max(start, head))
    low, high = 0, len(cuts) - 1
    found: list[int] | None = None
    while low <= high:
        middle = (low + high) // 2
        prompt = _render(tokenizer, [*history[:head], *history[cuts[middle] :]])
        if len(prompt) <= budget:
            found, high = prompt, middle - 1
        else:
            low = middle + 1
    return found


def _refusal(needed: int, max_context: int, policies: Policies) -> str | None:
    if needed <= max_context:
        return None
    if policies.fit == TRUNCATE:
        return (
            f"needs {needed} tokens even without its oldest messages; the model's context holds {max_context}"
        )
    return f"needs {needed} tokens; the model's context holds {max_context}"
