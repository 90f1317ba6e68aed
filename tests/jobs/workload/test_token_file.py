import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.errors import WorkloadError
from jobs.workload.conversation import HASHED
from jobs.workload.filler import Filler
from jobs.workload.token_file import digest_of, read, write
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

ROOT = Path(__file__).parents[3]


def workload(count: int = 3, blocks: int = 2) -> TokenWorkload:
    conversations = tuple(
        TokenConversation(
            id=f"c\xe4{index}",
            start=0.5 * index,
            scope="s",
            block_size=4,
            turns=(
                TokenTurn(keep=0, suffix=(7, 2**32 - 1), output_tokens=3),
                TokenTurn(
                    keep=2,
                    blocks=[index - 2**63, *range(blocks - 1)],
                    block_tokens=4 * blocks - 1,
                    output_tokens=1,
                    gap=1.5,
                ),
            ),
        )
        for index in range(count)
    )
    return TokenWorkload(
        name="w",
        conversations=conversations,
        validity=HASHED,
        tokenizer="t",
        filler=Filler(vocabulary=[3, 5, 8]),
        dropped=(("x", "too long"),),
        notes=("a note",),
    )


def test_the_file_is_read_one_by_one(tmp_path: Path) -> None:
    made = workload()
    write(made, tmp_path / "w")
    again = read(tmp_path / "w")
    assert replace(again, conversations=tuple(again.conversations)) == made
    assert len(again.conversations) == 3
    assert again.conversations[-1] == made.conversations[-1]
    assert again.conversations[1:] == made.conversations[1:]
    with pytest.raises(IndexError):
        again.conversations[3]
    for conversation in made.conversations:
        assert list(again.prompts(again.conversations[0]))[1][:2] == [7, 2**32 - 1]
        prompts = list(made.prompts(conversation))
        assert [len(prompt) for prompt in prompts] == [turn.prompt_tokens for turn in conversation.turns]
    assert digest_of(again) == digest_of(made)
    write(again, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "w").read_bytes()


def test_the_digest_is_of_everything_that_is_sent() -> None:
    made = workload()
    first, *others = made.conversations

    def with_turn(**changes: object) -> TokenWorkload:
        turns = (first.turns[0], replace(first.turns[1], **changes))
        return replace(made, conversations=(replace(first, turns=turns), *others))

    changed = [
        with_turn(blocks=[1, 2]),
        with_turn(block_tokens=6),
        with_turn(gap=None),
        with_turn(output_tokens=2),
        with_turn(keep=1),
        replace(made, filler=Filler(vocabulary=[3, 5])),
        replace(made, filler=None),
        replace(made, conversations=(replace(first, scope="z"), *others)),
        replace(made, conversations=(replace(first, block_size=5), *others)),
        replace(made, conversations=(replace(first, start=None), *others)),
    ]
    digests = {digest_of(entry) for entry in [made, *changed]}
    assert len(digests) == len(changed) + 1
    assert digest_of(replace(made, name="n", notes=(), dropped=())) == digest_of(made)
    assert digest_of(pickle.loads(pickle.dumps(made))) == digest_of(made)
    # Pinned: the digest names workloads in plans that are kept.
    assert digest_of(made).startswith("d127a7c3e14f9cae")


@pytest.mark.parametrize("keep", [0, 10, -1, -40])
def test_a_cut_file_is_damaged(tmp_path: Path, keep: int) -> None:
    write(workload(), tmp_path / "w")
    (tmp_path / "w").write_bytes((tmp_path / "w").read_bytes()[:keep])
    with pytest.raises(WorkloadError, match=r"is damaged .*plan the sweep again"):
        read(tmp_path / "w")


def test_a_damaged_conversation_is_named_when_it_is_read(tmp_path: Path) -> None:
    write(workload(), tmp_path / "w")
    data = bytearray((tmp_path / "w").read_bytes())
    data[20:40] = b"\xff" * 20
    (tmp_path / "w").write_bytes(data)
    again = read(tmp_path / "w")
    with pytest.raises(WorkloadError, match="is damaged"):
        again.conversations[0]


def test_the_load_process_reads_without_holding_the_file(tmp_path: Path) -> None:
    count, blocks = 60, 60_000
    write(workload(count, blocks), tmp_path / "w")
    assert (tmp_path / "w").stat().st_size > 8 * count * blocks
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from jobs.workload.token_file import read\n"
        "def peak():\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM'))\n"
        "before = peak()\n"
        f"workload = read({str(tmp_path / 'w')!r})\n"
        "total = sum(turn.prompt_tokens for c in workload.conversations for turn in c.turns)\n"
        f"assert total == {count} * (2 + 2 + 4 * {blocks} - 1), total\n"
        "print(peak() - before)\n"
        "heavy = {'numpy', 'ray', 'pandas', 'pyarrow', 'torch', 'hydra', 'mlflow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    size_kib = (tmp_path / "w").stat().st_size / 1024
    assert int(found.stdout) < size_kib / 4
