"""Completing a workload without replies on its node: one baseline engine answers every open turn, in order.

Nothing is measured, so the answers are not streamed, and the engine ends them as it likes: no `ignore_eos`,
no pinned length. The reply to one turn is history of the next.
"""

import time
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import httpx

from engines.digest import seed_of
from engines.errors import EngineError
from engines.registry import engine_named
from engines.spec import EngineConfig
from jobs.cores import CoreLease
from jobs.errors import GpusHeldError, RecordError
from jobs.fleet import Fleet, visible_devices
from jobs.gpus import GpuMemory
from jobs.lifeline import ends_with_raylet
from jobs.nouns import counted
from jobs.scratch import scratch
from jobs.start import start_attempts
from jobs.workload.conversation import Conversation, Turn
from jobs.workload.dialogue import ASSISTANT, clean
from jobs.workload.recorded import Recording
from jobs.workload.tokenizer import Tokenizer, tokenizer_for

POLL_SECONDS = 1.0
"""How often the engine's life is checked while it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTask:
    """What a recording's process is told."""

    config: EngineConfig
    """The baseline that writes the replies."""
    conversations: tuple[Conversation, ...]
    """What is still to be completed."""
    resource: str
    """Ray resource that stands for a device."""
    engine_cores: int
    """CPU cores of the engine."""
    load_cores: int
    """CPU cores of this process."""
    concurrency: int
    """Conversations at a time."""
    max_output_tokens: int
    """Cap of a reply, in tokens."""
    temperature: float
    """0 is greedy."""
    seed: int
    """Base of the per-request sampling seeds."""
    ready_seconds: float
    """From the engine's start to its first answer."""
    stop_seconds: float
    """From asking the engine to stop to killing it."""
    answer_seconds: float
    """Longest wait for one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderReady:
    """The engine is up."""

    seconds: float
    """Time its start took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSkipped:
    """A conversation cannot be completed at all."""

    conversation: str
    """Its id."""
    reason: str
    """Why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderFailed:
    """The recording ends here; what was reported before holds."""

    message: str
    """What went wrong."""
    log_tail: str
    """Last lines of the engine's log."""


RecordReport = RecorderReady | Recording | RecorderSkipped | RecorderFailed


class RecordRunner:
    """Starts the engine and completes conversations. Knows nothing of Ray, like `jobs.block.BlockRunner`."""

    def run(self, task: RecordTask) -> Iterator[RecordReport]:
        """Yield each conversation once it is complete, in no particular order."""
        with (
            ends_with_raylet(),
            CoreLease(engine=task.engine_cores, load=task.load_cores) as lease,
            scratch("specload-record-") as folder,
        ):
            devices = task.config.layout.devices
            names = visible_devices(task.resource, devices)
            fleet = Fleet(
                engine_named(task.config.engine),
                task.config,
                name="record",
                devices=devices,
                device_names=names,
                cores=lease.cores,
                folder=folder,
            )
            try:
                *_, ready = start_attempts(
                    fleet,
                    GpuMemory(names),
                    ready_seconds=task.ready_seconds,
                    stop_seconds=task.stop_seconds,
                )
                yield RecorderReady(seconds=ready.seconds)
                yield from _complete_all(fleet, task)
            except EngineError as error:
                yield RecorderFailed(message=str(error), log_tail=error.log_tail)
            except GpusHeldError as error:
                yield RecorderFailed(message=str(error), log_tail="")
            finally:
                fleet.stop(grace=task.stop_seconds)
                fleet.remove_files()


def _complete_all(fleet: Fleet, task: RecordTask) -> Generator[RecordReport]:
    url = fleet.servers[0].url
    with ThreadPoolExecutor(task.concurrency) as threads, _client(task) as client:
        completer = Completer(task, client, url)
        waiting: set[Future[Recording | RecorderSkipped]] = {
            threads.submit(completer.complete, conversation) for conversation in task.conversations
        }
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                fleet.check()  # an engine that died is the cause of what its requests ran into
                for future in done:
                    yield future.result()
        except RecordError as error:
            yield RecorderFailed(message=str(error), log_tail=fleet.log_tail())
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            completer.closed = True
            if waiting:
                fleet.stop(grace=task.stop_seconds)  # ends the answers that threads still wait for


def _client(task: RecordTask) -> httpx.Client:
    return httpx.Client(
        timeout=httpx.Timeout(30.0, read=task.answer_seconds, pool=None),
        limits=httpx.Limits(max_connections=task.concurrency),
        trust_env=False,
    )


class Completer:
    """Completes conversations, several at a time in threads of their own."""

    def __init__(self, task: RecordTask, client: httpx.Client, url: str) -> None:
        self.closed = False
        self._task = task
        self._client = client
        self._url = url
        self._tokenizer: Tokenizer = tokenizer_for(task.config.model, task.config.device)

    def complete(self, conversation: Conversation) -> Recording | RecorderSkipped:
        """Return `conversation` with a reply in every turn.

        Raises:
            RecordError: the engine refused a request or broke an answer off.
        """
        context = self._task.config.model.max_context
        history: list[tuple[str, str]] = []
        turns: list[Turn] = []
        reasons: list[str | None] = []
        shortened = None
        for number, turn in enumerate(conversation.turns):
            history.extend((message.role, message.content) for message in turn.messages)
            reply, tokens, reason = turn.reply, turn.output_tokens, None
            if reply is None:
                prompt = self._tokenizer.render(history)
                if len(prompt) >= context:
                    shortened = (
                        f"the prompt of turn {number + 1} has {len(prompt)} tokens and the model's context "
                        f"holds {context}, a reply included"
                    )
                    break
                reply, tokens, reason = self._ask(conversation.id, number, prompt)
            turns.append(replace(turn, reply=reply, output_tokens=tokens))
            reasons.append(reason)
            history.append((ASSISTANT, reply))
        if not turns:
            return RecorderSkipped(conversation=conversation.id, reason=f"left out: {shortened}")
        kept = f"ends after {len(turns)} of {counted(len(conversation.turns), 'turn')}"
        return Recording(
            conversation=replace(conversation, turns=tuple(turns)),
            finish_reasons=tuple(reasons),
            shortened=None if shortened is None else f"{kept}: {shortened}",
        )

    def _ask(self, conversation: str, number: int, prompt: list[int]) -> tuple[str, int, str]:
        """Return reply, its length in tokens, and why it ended."""
        task = self._task
        body = {
            "model": task.config.model.name,
            "prompt": prompt,
            "max_tokens": min(task.max_output_tokens, task.config.model.max_context - len(prompt)),
            "temperature": task.temperature,
            "seed": seed_of(task.seed, "record", conversation, number),
        }
        where = f"turn {number + 1} of conversation {conversation!r}"
        if self.closed:
            message = f"{where} was given up"
            raise RecordError(message)
        begun = time.monotonic()
        try:
            answer = self._client.post(f"{self._url}/v1/completions", json=body)
        except httpx.HTTPError as error:
            seconds = time.monotonic() - begun
            message = f"{where} got no answer after {seconds:.0f} s ({type(error).__name__}: {error})"
            raise RecordError(message) from error
        if answer.status_code != httpx.codes.OK:
            message = f"{where} was refused with HTTP {answer.status_code}: {answer.text[:500].strip()}"
            raise RecordError(message)
        try:
            data = answer.json()
            [choice] = data["choices"]
            tokens = data["usage"]["completion_tokens"]
            return clean(str(choice["text"])), max(1, int(tokens)), str(choice["finish_reason"])
        except (ValueError, KeyError, TypeError) as error:
            message = f"{where} got an answer without text, usage or finish reason: {answer.text[:500]}"
            raise RecordError(message) from error
