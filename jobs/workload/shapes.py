"""From conversations to the shapes that statistics are made of: text by a tokenizer, traces as they are."""

from array import array
from collections.abc import Sequence
from hashlib import blake2b

from jobs.workload.conversation import Conversation
from jobs.workload.inspection import ConversationShape, TurnShape
from jobs.workload.tokenizer import Tokenizer
from jobs.workload.tokens import TokenConversation
from jobs.workload.trace import TraceConversation


def text_shape(conversation: Conversation, tokenizer: Tokenizer, block_size: int) -> ConversationShape:
    """Return the shape of a conversation of text, with its prompts as a replay would send them.

    A reply that the file lacks is not in the history of later turns either, so their prompts are that much
    shorter than they will be.
    """
    history: list[tuple[str, str]] = []
    turns = []
    for turn in conversation.turns:
        history.extend((message.role, message.content) for message in turn.messages)
        prompt = tokenizer.render(history)
        output = turn.output_tokens
        if turn.reply is not None:
            history.append(("assistant", turn.reply))
            output = max(1, len(tokenizer.encode(turn.reply))) if output is None else output
        turns.append(
            TurnShape(
                input_tokens=len(prompt),
                output_tokens=output,
                gap=turn.gap,
                blocks=_blocks(prompt, block_size),
            )
        )
    return ConversationShape(turns=turns, block_size=block_size, start=conversation.start)


def trace_shape(conversation: TraceConversation, *, content_known: bool) -> ConversationShape:
    """Return the shape of a conversation of a trace, in the trace's own blocks.

    Args:
        conversation: A conversation of hashes or lengths.
        content_known: False for lengths only: nobody knows what their prompts share.
    """
    turns = [
        TurnShape(
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
            gap=turn.gap,
            blocks=array("q", turn.blocks) if content_known else None,
        )
        for turn in conversation.turns
    ]
    return ConversationShape(
        turns=turns,
        block_size=conversation.turns[0].block_size,
        scope=conversation.scope,
        start=conversation.start,
    )


def bound_shape(
    conversation: TokenConversation, block_size: int, *, content_known: bool = True
) -> ConversationShape:
    """Return the shape of a conversation in tokens, as a replay sends it.

    Args:
        conversation: A conversation of a token workload.
        block_size: Tokens of a block of text; a trace keeps its own.
        content_known: False for lengths only.
    """
    size = conversation.block_size or block_size
    whole: array[int] = array("q")
    tokens: list[int] = []
    turns = []
    for turn in conversation.turns:
        content: array[int] | None = None
        if conversation.block_size:
            whole = whole[: turn.keep // size] + array("q", turn.blocks)
            content = whole if content_known else None
        else:
            tokens = [*tokens[: turn.keep], *turn.suffix]
            content = _blocks(tokens, size)
        turns.append(
            TurnShape(
                input_tokens=turn.prompt_tokens,
                output_tokens=turn.output_tokens,
                gap=turn.gap,
                blocks=content,
            )
        )
    return ConversationShape(turns=turns, block_size=size, scope=conversation.scope, start=conversation.start)


def _blocks(prompt: Sequence[int], block_size: int) -> "array[int]":
    """Return the content of each whole block."""
    tokens = array("I", prompt).tobytes()
    size = 4 * block_size
    digests = (
        blake2b(tokens[start : start + size], digest_size=8).digest()
        for start in range(0, len(tokens) - size + 1, size)
    )
    return array("q", b"".join(digests))
