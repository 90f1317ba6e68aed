"""Binding traces: hash blocks stay blocks, and become tokens when they are sent."""

from array import array
from dataclasses import replace

from jobs.workload.bound import Bound, common_prefix
from jobs.workload.policies import SCALE, TRUNCATE, Policies
from jobs.workload.tokens import TokenConversation, TokenTurn
from jobs.workload.trace import TraceConversation, TraceTurn


def bind_trace(conversation: TraceConversation, policies: Policies, *, max_context: int) -> Bound:
    """Return `conversation` with every prompt as what it adds to the common whole blocks of the one before.

    Under `truncate_oldest`, a turn that is longer than the context loses its oldest whole blocks after the
    system prompt, as far as the trace says how long that is: as few as needed.
    """
    size = conversation.turns[0].block_size
    before: array[int] = array("q")
    before_tokens = 0
    turns: list[TokenTurn] = []
    needed = cut_turns = cut_tokens = capped = silent = known = 0
    refusal: str | None = None
    played = conversation.turns[: policies.max_turns]
    for number, turn in enumerate(played):
        output = policies.output_of(turn.output_tokens)
        capped += policies.max_output_tokens is not None and output < turn.output_tokens
        blocks, tokens = turn.blocks, turn.input_tokens
        assert isinstance(blocks, array)
        if policies.fit == TRUNCATE and tokens + output > max_context:
            shorter = _truncated(turn, conversation.head_tokens // size, max_context - output)
            if shorter is not None:
                blocks, tokens = shorter
                cut_turns += 1
                cut_tokens += turn.input_tokens - tokens
        needed = max(needed, tokens + output)
        # Only blocks that are whole in both: a partly filled one ends differently in the two prompts.
        common = min(common_prefix(before, blocks), before_tokens // size, tokens // size)
        turns.append(
            TokenTurn(
                keep=common * size,
                blocks=blocks[common:],
                block_tokens=tokens - common * size,
                output_tokens=output,
                gap=policies.gap_of(turn.gap) if number else None,
            )
        )
        known += number > 0 and turn.gap is not None
        silent += number > 0 and turn.gap is None
        before, before_tokens = blocks, tokens
    if needed > max_context and policies.fit != SCALE:
        even = " even without its oldest blocks" if policies.fit == TRUNCATE else ""
        refusal = f"needs {needed} tokens{even}; the model's context holds {max_context}"
    return Bound(
        conversation=TokenConversation(
            id=conversation.id,
            turns=tuple(turns),
            start=conversation.start,
            scope=conversation.scope,
            block_size=size,
        ),
        needed=needed,
        refusal=refusal,
        cut_turns=cut_turns,
        cut_tokens=cut_tokens,
        late_turns=len(conversation.turns) - len(played),
        capped_turns=capped,
        silent_gaps=silent,
        gaps=known,
    )


def _truncated(turn: TraceTurn, head: int, budget: int) -> "tuple[array[int], int] | None":
    """Return the blocks and the length that are left of a turn, or None if it cannot be made to fit."""
    assert isinstance(turn.blocks, array)
    size = turn.block_size
    cut = -(-(turn.input_tokens - budget) // size)
    # At least the last block stays: a prompt has to end with what the trace asked.
    if budget < 1 or head + cut >= len(turn.blocks):
        return None
    return turn.blocks[:head] + turn.blocks[head + cut :], turn.input_tokens - cut * size


def scaled(bound: Bound, numerator: int, denominator: int) -> Bound:
    """Return the conversation with every length times numerator / denominator.

    Blocks shrink to a whole number of tokens, so equal blocks stay equal; a partly filled block stays partly
    filled, and no prompt or reply becomes empty.
    """
    conversation = bound.conversation
    old = conversation.block_size
    new = max(1, old * numerator // denominator)
    turns: list[TokenTurn] = []
    needed = 0
    for turn in conversation.turns:
        whole, part = divmod(turn.block_tokens, old)
        block_tokens = whole * new + -(-part * new // old)
        short = replace(
            turn,
            keep=turn.keep // old * new,
            block_tokens=block_tokens,
            output_tokens=max(1, turn.output_tokens * numerator // denominator),
        )
        needed = max(needed, short.prompt_tokens + short.output_tokens)
        turns.append(short)
    return replace(
        bound,
        conversation=replace(conversation, turns=tuple(turns), block_size=new),
        needed=needed,
    )
