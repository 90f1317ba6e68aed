"""Importer of Spec-Bench `question.jsonl`: `question_id`, `category` and one or two `turns`, no replies.

Every turn is a request of its own; the second follows the reply to the first. `specload workload record` has
an engine write the replies. The field `reference` of some rows is a solution and no reply of a model.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.conversation import Conversation, Message, Turn
from jobs.workload.dialogue import USER, clean
from jobs.workload.import_log import ImportLog
from jobs.workload.json_file import json_lines


def read_spec_bench(paths: Sequence[Path], log: ImportLog) -> Iterator[Conversation]:
    """Yield one conversation a question, called after its id, with the category as its group.

    Raises:
        WorkloadError: a file or line is not of this form; the message names it.
    """
    for path in paths:
        for where, value in json_lines(path):
            turns = value.get("turns") if isinstance(value, Mapping) else None
            if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) for turn in turns):
                message = f"{where}: expected a Spec-Bench question, an object with a list `turns` of texts"
                raise WorkloadError(message)
            if value.get("question_id") is None:
                message = f"{where}: the question has no `question_id`"
                raise WorkloadError(message)
            if "reference" in value:
                log.note("`reference` is not used: a solution is no reply of a model")
            category = value.get("category")
            yield Conversation(
                id=str(value["question_id"]),
                turns=tuple(
                    Turn(messages=(Message(role=USER, content=clean(turn)),), reply=None) for turn in turns
                ),
                group=None if category is None else str(category),
            )
