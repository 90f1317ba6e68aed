"""From conversations to the frozen token workload that every arm replays."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from jobs.errors import ChatRefusedError, MissingRepliesError, WorkloadError
from jobs.nouns import counted
from jobs.workload.bind_text import bind_text
from jobs.workload.bind_trace import bind_trace, scaled
from jobs.workload.bound import Bound
from jobs.workload.conversation import Conversation
from jobs.workload.filler import filler_of
from jobs.workload.policies import FIXED, NO_GAPS, SCALE, Policies
from jobs.workload.selection import Selection
from jobs.workload.token_file import digest_of, read, write
from jobs.workload.tokenizer import Tokenizer
from jobs.workload.tokens import TokenWorkload
from jobs.workload.trace import TraceConversation

__all__ = ["Source", "bind", "digest_of", "read", "write"]

DEFAULT = Policies()


class Source(Protocol):
    """Where conversations come from: a `Workload`, or files that are read while they are bound."""

    @property
    def name(self) -> str:
        """Name of the workload in results."""

    @property
    def conversations(self) -> Iterable[Conversation | TraceConversation]:
        """Text, or a trace; taken once."""

    @property
    def validity(self) -> str:
        """Content validity; asked for after the conversations."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know; asked for after the conversations."""


def bind(
    source: Source,
    tokenizer: Tokenizer,
    *,
    max_context: int,
    policies: Policies = DEFAULT,
    seed: int = 0,
) -> TokenWorkload:
    """Return the conversations in tokens, chosen and fitted as `policies` say; history is the recorded one.

    The conversations are taken one after another and only those that are kept stay in memory, in about four
    bytes a token of text and eight bytes a block of a trace.

    Args:
        source: Conversations as text, or as a trace of hashes or lengths.
        tokenizer: Tokenizer and chat template of the target.
        max_context: Longest prompt plus output in tokens.
        policies: What is used of the workload, and how.
        seed: Seed of the choice under `sample` and `limit`.

    Raises:
        WorkloadError: nothing fits, or a policy that this workload cannot follow.
        ChatRefusedError: the chat template refuses every conversation.
        MissingRepliesError: a turn has no recorded reply.
    """
    selection = Selection(seed=seed, sample=policies.sample, limit=policies.limit)
    missing = turns = 0
    traces = False
    refusal: ChatRefusedError | None = None
    for conversation in source.conversations:
        if isinstance(conversation, TraceConversation):
            traces = True
            if selection.wants(conversation.id):
                selection.offer(bind_trace(conversation, policies, max_context=max_context))
            continue
        _check_text(source, policies)
        turns += len(conversation.turns)
        absent = sum(turn.reply is None for turn in conversation.turns)
        missing += absent
        if not absent and selection.wants(conversation.id):
            try:
                bound = bind_text(conversation, tokenizer, policies, max_context=max_context)
            except ChatRefusedError as error:
                refusal = refusal or error
                selection.refuse(conversation.id, str(error))
            else:
                selection.offer(bound)
    if missing:
        raise MissingRepliesError.of(source.name, missing, turns)
    kept = list(selection.kept())
    if not kept and refusal is not None and selection.shortest is None:
        raise refusal
    if not kept:
        raise _nothing(source, selection, policies, max_context)
    notes = [*source.notes, *_choice_notes(selection, policies, len(kept))]
    if policies.fit == SCALE:
        kept, note = _scale(source, kept, max_context)
        notes += note
    _check_gaps(source, policies, kept)
    notes += _notes(policies, kept)
    return TokenWorkload(
        name=source.name,
        conversations=tuple(bound.conversation for bound in kept),
        validity=source.validity,
        tokenizer=tokenizer.digest,
        filler=filler_of(tokenizer.plain_tokens()) if traces else None,
        dropped=selection.refused,
        notes=tuple(notes),
    )


def _scale(source: Source, kept: Sequence[Bound], max_context: int) -> tuple[list[Bound], list[str]]:
    """Shrink all lengths by the largest factor that makes the longest turn fit."""
    longest = max(bound.needed for bound in kept)
    if longest <= max_context:
        return list(kept), []
    old = max(bound.conversation.block_size for bound in kept)
    for new in range(old * max_context // longest, 0, -1):
        shrunk = [scaled(bound, new, old) for bound in kept]
        if max(bound.needed for bound in shrunk) <= max_context:
            note = (
                f"all lengths are scaled by {new / old:.4g} (blocks of {old} tokens to {new}), so that the "
                f"longest turn of {longest} tokens fits the model's context of {max_context}"
            )
            return shrunk, [note]
    message = (
        f"workload {source.name!r}: workload.fit=scale cannot shrink blocks of {old} tokens so far that its "
        f"longest turn of {longest} tokens fits the model's context of {max_context}; choose drop, or "
        "truncate_oldest"
    )
    raise WorkloadError(message)


def _check_text(source: Source, policies: Policies) -> None:
    if policies.fit == SCALE:
        message = (
            f"workload {source.name!r} is text, and workload.fit=scale shrinks lengths: a text cannot be "
            "shorter and still say the same; choose drop or truncate_oldest"
        )
        raise WorkloadError(message)


def _check_gaps(source: Source, policies: Policies, kept: Sequence[Bound]) -> None:
    if policies.gaps != NO_GAPS and not any(bound.gaps for bound in kept):
        message = (
            f"workload.gaps={policies.gaps} plays recorded pauses between turns, and workload "
            f"{source.name!r} has none; set workload.gaps=none"
        )
        raise WorkloadError(message)


def _nothing(source: Source, selection: Selection, policies: Policies, max_context: int) -> WorkloadError:
    if not selection.sampled:
        return WorkloadError(
            f"workload {source.name!r}: a sample of {policies.sample} of its "
            f"{counted(selection.seen, 'conversation')} "
            "holds none; choose a larger workload.sample, or null"
        )
    return WorkloadError(
        f"workload {source.name!r}: none of its {counted(selection.sampled, 'conversation')} fits the "
        f"model's context of {max_context} tokens; they need {selection.shortest} to {selection.longest}: "
        "raise model.max_context, choose shorter conversations, or another workload.fit"
    )


def _choice_notes(selection: Selection, policies: Policies, kept: int) -> list[str]:
    notes = []
    if policies.sample is not None:
        of = counted(selection.seen, "conversation")
        notes.append(f"a sample of {policies.sample:g} has {selection.sampled} of {of}")
    if policies.limit is not None and kept < selection.sampled:
        of = counted(selection.sampled, "conversation")
        notes.append(f"{kept} of {of} are used, chosen by a hash of their ids")
    return notes


def _notes(policies: Policies, kept: Sequence[Bound]) -> list[str]:
    """Say what the policies did to the conversations that are used, with numbers."""
    late = [bound.late_turns for bound in kept if bound.late_turns]
    cut = [bound for bound in kept if bound.cut_turns]
    capped = sum(bound.capped_turns for bound in kept)
    silent = sum(bound.silent_gaps for bound in kept)
    notes = []
    if late:
        turns, of = counted(sum(late), "turn"), counted(len(late), "conversation")
        notes.append(f"left out by workload.max_turns={policies.max_turns}: {turns} of {of}")
    if cut:
        turns, of = counted(sum(bound.cut_turns for bound in cut), "turn"), counted(len(cut), "conversation")
        what = "messages" if any(bound.conversation.block_size == 0 for bound in cut) else "blocks"
        tokens = sum(bound.cut_tokens for bound in cut)
        notes.append(
            f"cut to fit the model's context, the oldest {what} after the system prompt first: {turns} of "
            f"{of}, by {tokens} prompt tokens in all"
        )
    if capped:
        turns = counted(capped, "turn")
        notes.append(f"capped at {policies.max_output_tokens} output tokens: {turns} whose reply was longer")
    if policies.output == FIXED:
        notes.append(f"every turn is pinned to {policies.output_tokens} output tokens, whatever was recorded")
    if policies.gaps != NO_GAPS and silent:
        notes.append(f"no recorded pause, so sent at once after the reply: {counted(silent, 'turn')}")
    return notes
