"""Rounds: how a sweep grows beyond its plan.

`<sweep>/rounds/0001.json` holds why the round was added, its blocks, and the digest of what came before it
(the plan, or the round before), so that a round can be neither changed nor put into another sweep. Indices of
blocks go on. A round is appended when all before it is done, and found again by every later run of the
sweep, which finishes it by the same rules as the plan's own blocks.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from engines.digest import digest
from orchestrator.durable import replace_json
from orchestrator.plan import Arm, Block, Plan, arm_from, block_from

FOLDER = "rounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Blocks that were added to a sweep for what its results showed."""

    index: int
    """From 1; 0 is the plan itself."""
    reason: str
    """For people."""
    kind: str
    """`search` or `confirmation` (see `jobs/result.py`): whether its cells count beside the planned ones."""
    blocks: tuple[Block, ...]
    parent: str
    """Digest of the round before, of the plan for the first."""
    arms: tuple[Arm, ...] = ()
    """Arms of its blocks that the plan does not have."""

    @property
    def digest(self) -> str:
        """Identity: the blocks and everything before them."""
        added = [[arm.digest for arm in self.arms]] if self.arms else []
        return digest([self.index, [asdict(block) for block in self.blocks], self.parent, *added])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, with the digest beside what it identifies."""
        return {**asdict(self), "digest": self.digest}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`'s form.

        Raises:
            ValueError: the content does not match its digest.
        """
        blocks = tuple(block_from(block) for block in data["blocks"])
        arms = tuple(arm_from(arm) for arm in data.get("arms", ()))
        found = cls(
            index=data["index"],
            reason=data["reason"],
            kind=data["kind"],
            blocks=blocks,
            parent=data["parent"],
            arms=arms,
        )
        if found.digest != data["digest"]:
            message = "its content does not match its digest"
            raise ValueError(message)
        return found


class Rounds:
    """The rounds of one sweep, read from its folder; the driver appends."""

    def __init__(self, directory: Path, plan: Plan, *, set_aside: Callable[[Path, str], None]) -> None:
        """Read what earlier runs appended.

        A round that is damaged or does not follow on what is before it is given to `set_aside` with the
        reason, and so is every one after it. The same results ask for that round again and find its cells.
        """
        self._folder = directory / FOLDER
        self._plan = plan
        self._rounds: list[Round] = []
        problem = ""
        for path in sorted(self._folder.glob("[0-9]*.json")):
            problem = "a round before it was set aside" if problem else self._read(path)
            if problem:
                set_aside(path, problem)
        plan.learn(arm for each in self._rounds for arm in each.arms)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The appended rounds, in order."""
        return tuple(self._rounds)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The plan's blocks and all that were appended."""
        return (*self._plan.blocks, *(block for each in self._rounds for block in each.blocks))

    def of(self, kind: str) -> tuple[Round, ...]:
        """The appended rounds of one kind, in order."""
        return tuple(each for each in self._rounds if each.kind == kind)

    def append(self, kind: str, reason: str, blocks: Sequence[Block], arms: Sequence[Arm] = ()) -> Round:
        """Add a round with these blocks, numbered on from the last, and return it.

        Args:
            kind: `search` or `confirmation`.
            reason: for people.
            blocks: without their numbers.
            arms: those of their arms that the plan does not have.
        """
        index = len(self._rounds) + 1
        first = max((block.index for block in self.blocks), default=-1) + 1
        found = Round(
            index=index,
            reason=reason,
            kind=kind,
            blocks=tuple(
                replace(block, index=number, round=index, kind=kind)
                for number, block in enumerate(blocks, start=first)
            ),
            parent=self._last,
            arms=tuple(arms),
        )
        self._plan.learn(arms)
        self._folder.mkdir(exist_ok=True)
        replace_json(self._folder / f"{index:04d}.json", found.to_dict())
        self._rounds.append(found)
        return found

    @property
    def _last(self) -> str:
        return self._rounds[-1].digest if self._rounds else self._plan.digest

    def _read(self, path: Path) -> str:
        """Take the round that `path` holds; return why not, if it is none."""
        try:
            found = Round.from_dict(json.loads(path.read_text()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"it is no round of a sweep ({error})"
        if (found.index, found.parent) != (len(self._rounds) + 1, self._last):
            return "it does not follow on this plan and the rounds before it"
        self._rounds.append(found)
        return ""
