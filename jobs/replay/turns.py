"""One conversation as it is played: turn after turn, each when it is due.

The history of a turn is the recorded one, so a failed request does not end its conversation: the next turn
follows, and every arm sends the same requests.
"""

import time

from jobs.replay.answer import Answer
from jobs.replay.body import request_body
from jobs.replay.http import Connection
from jobs.replay.job import ReplayJob
from jobs.replay.lines import Lines
from jobs.replay.log import ReplayLog
from jobs.replay.pace import Pace
from jobs.workload.tokens import TokenTurn, TokenWorkload

_NS = 1_000_000_000


class Script:
    """The requests of one conversation, the next one always written."""

    __slots__ = ("_job", "_prompts", "conversation", "epoch", "next", "rank")

    def __init__(self, job: ReplayJob, workload: TokenWorkload, position: int) -> None:
        index, self.epoch = job.order[position]
        self.conversation = workload.conversations[index]
        self.rank = position % job.ranks if job.rank_header is not None else None
        """Data-parallel rank of all its requests; None leaves it to the engine."""
        self._job = job
        self._prompts = workload.prompts(self.conversation)
        self.next = b""
        """Body of the next request."""
        self.write(0)

    def write(self, number: int) -> None:
        """Write the request of turn `number`; turns are written in order."""
        self.next = request_body(
            self._job,
            next(self._prompts),
            self.conversation.turns[number],
            conversation=self.conversation.id,
            epoch=self.epoch,
            number=number,
        )


class Turns:
    """Plays conversations of one job."""

    def __init__(
        self, job: ReplayJob, workload: TokenWorkload, log: ReplayLog, *, lines: Lines, pace: Pace
    ) -> None:
        self._job = job
        self._workload = workload
        self._log = log
        self._lines = lines
        self._pace = pace

    def script(self, position: int) -> Script:
        """Return the conversation at a position of the order, its first request written."""
        return Script(self._job, self._workload, position)

    async def play(self, script: Script, *, user: int, replica: int, due: int) -> int | None:
        """Play a conversation, its first turn at `due` (ns).

        A later turn is due its recorded gap after the answer before it; without a gap, at once.

        Returns:
            When its last answer ended (ns); None if the replay was cut off first.
        """
        conversation = script.conversation
        for number, turn in enumerate(conversation.turns):
            if number and turn.gap:
                due += int(turn.gap * _NS)
            await self._pace.until(due)
            connection = await self._lines.take(user, replica)
            answer = await self._send(connection, script, turn)
            request = self._log.begin()
            if number + 1 < len(conversation.turns):
                # Written while the engine works: encoding a long prompt costs the next turn no time.
                script.write(number + 1)
            await answer.finished
            self._lines.give_back(user, replica, connection)
            self._log.end(
                request,
                answer,
                scheduled=due,
                conversation=conversation.id,
                epoch=script.epoch,
                turn=number,
                user=user,
                replica=replica,
                rank=script.rank,
                expected_prompt_tokens=turn.prompt_tokens,
            )
            if self._pace.ended:
                return None
            due = answer.ended
        return due

    async def _send(self, connection: Connection, script: Script, turn: TokenTurn) -> Answer:
        answer = Answer(turn.output_tokens, time.monotonic_ns())
        if self._pace.ended:
            # Kept as a failure, though it never left: a replay that was cut off must not look complete.
            answer.break_off("deadline", self._cut_off, time.monotonic_ns())
            return answer
        try:
            await connection.open()
        except OSError as error:
            answer.break_off("refused", str(error), time.monotonic_ns())
        else:
            connection.send(script.next, answer, rank=script.rank)
        return answer

    @property
    def _cut_off(self) -> str:
        return f"the replay's deadline of {self._job.deadline_seconds:g} s passed before it was sent"
