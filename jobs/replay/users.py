"""The closed loop: C users who play conversations of one shared order, turn after turn.

A user takes the next entry of the order, plays its turns one after another without think time and keeps its
slot to the end. The history of a turn is the recorded one, so a failed request does not end its conversation:
the user goes on with the next turn, and every arm sends the same requests.
"""

import asyncio
import time
from collections.abc import Sequence

from jobs.replay.answer import Answer
from jobs.replay.body import request_body
from jobs.replay.clock import SelfCheck
from jobs.replay.http import Connection
from jobs.replay.job import ReplayJob
from jobs.replay.log import ReplayLog
from jobs.replay.shared_order import WorkQueue
from jobs.replay.window import Window
from jobs.workload.tokens import TokenConversation, TokenWorkload


class ClosedLoop:
    """Plays one process' share of a job to its end."""

    def __init__(
        self,
        job: ReplayJob,
        workload: TokenWorkload,
        log: ReplayLog,
        *,
        queue: WorkQueue,
        users: Sequence[int],
    ) -> None:
        self.window = Window(users)
        self.check = SelfCheck()
        self._job = job
        self._workload = workload
        self._log = log
        self._queue = queue
        replicas = len(job.urls)
        self._connections = {user: Connection(job.urls[user % replicas]) for user in users}
        self._expired = False

    async def open(self) -> None:
        """Connect every user, so that nobody's first answer waits for handshakes.

        A connection that fails here fails again, and is recorded, with the user's first request.
        """
        connections = self._connections.values()
        await asyncio.gather(*(connection.open() for connection in connections), return_exceptions=True)

    async def play(self, start: int) -> None:
        """Play conversations from `start` (ns, the same in all processes) on, as long as there are any.

        The deadline cuts the replay off.
        """
        await asyncio.sleep(max(0, start - time.monotonic_ns()) / 1e9)
        self.check.start()
        deadline = asyncio.get_running_loop().call_later(self._job.deadline_seconds, self._expire)
        watchdog = asyncio.create_task(self._watch_stalls())
        try:
            await asyncio.gather(*(self._user(user) for user in self._connections))
        finally:
            deadline.cancel()
            watchdog.cancel()
            self.check.stop()
            for connection in self._connections.values():
                connection.abort()

    async def _user(self, user: int) -> None:
        while (position := self._queue.take()) is not None:
            index, epoch = self._job.order[position]
            await self._conversation(user, self._workload.conversations[index], epoch)
            if self._expired:
                return
            self.window.finished(user, time.monotonic_ns())
        self.window.out_of_work(time.monotonic_ns())

    async def _conversation(self, user: int, conversation: TokenConversation, epoch: int) -> None:
        prompts = self._workload.prompts(conversation)

        def body(number: int) -> bytes:
            turn = conversation.turns[number]
            return request_body(
                self._job, next(prompts), turn, conversation=conversation.id, epoch=epoch, number=number
            )

        following = body(0)
        for number, turn in enumerate(conversation.turns):
            if self._expired:
                return
            answer = await self._send(user, following, turn.output_tokens)
            index = self._log.begin()
            if number + 1 < len(conversation.turns):
                # Written while the engine works: encoding a long prompt costs the next turn no time.
                following = body(number + 1)
            await answer.finished
            self._log.end(
                index,
                answer,
                conversation=conversation.id,
                epoch=epoch,
                turn=number,
                user=user,
                replica=user % len(self._job.urls),
                expected_prompt_tokens=turn.prompt_tokens,
            )

    async def _send(self, user: int, body: bytes, expected_tokens: int) -> Answer:
        connection = self._connections[user]
        answer = Answer(expected_tokens, time.monotonic_ns())
        try:
            await connection.open()
        except OSError as error:
            answer.break_off("refused", str(error), time.monotonic_ns())
        else:
            connection.send(body, answer)
        return answer

    def _expire(self) -> None:
        self._expired = True
        self._break_off_all(
            "deadline", f"the replay's deadline of {self._job.deadline_seconds:g} s passed", age=0
        )

    async def _watch_stalls(self) -> None:
        limit = self._job.stall_seconds
        while True:
            await asyncio.sleep(min(1.0, limit / 4))
            self._break_off_all("stall", f"no byte for {limit:g} s", age=int(limit * 1e9))

    def _break_off_all(self, error: str, detail: str, *, age: int) -> None:
        now = time.monotonic_ns()
        for connection in self._connections.values():
            answer = connection.answer
            if answer is not None and now - answer.heard >= age:
                connection.abort()
                answer.break_off(error, detail, now)
