from typing import Any

import pytest

from jobs.errors import WorkloadError
from jobs.workload.policies import Policies


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"fit": "cut"}, r"workload\.fit is 'cut'; choose drop, truncate_oldest or scale"),
        ({"output": "live"}, r"workload\.output is 'live'; choose recorded or fixed"),
        ({"gaps": True}, r"workload\.gaps is True; choose none, recorded or scaled"),
        ({"limit": 0}, r"workload\.limit is 0; choose 1 or more"),
        ({"max_turns": 0}, r"workload\.max_turns is 0"),
        ({"max_output_tokens": -1}, r"workload\.max_output_tokens is -1"),
        ({"output": "fixed", "output_tokens": 0}, r"workload\.output_tokens is 0"),
        ({"sample": 0.0}, r"workload\.sample is 0\.0; it is a share"),
        ({"sample": 1.5}, r"workload\.sample is 1\.5; it is a share"),
        ({"output": "fixed"}, r"workload\.output=fixed needs the length: set workload\.output_tokens"),
        ({"output_tokens": 5}, r"workload\.output_tokens is the length for workload\.output=fixed"),
        (
            {"output": "fixed", "output_tokens": 5, "max_output_tokens": 9},
            r"workload\.max_output_tokens caps recorded lengths and workload\.output=fixed uses none",
        ),
        ({"gaps": "scaled"}, r"workload\.gaps=scaled needs the factor: set workload\.gap_scale"),
        ({"gap_scale": 2.0}, r"but the gaps are 'none'; set workload\.gaps=scaled"),
        ({"gaps": "recorded", "gap_scale": 2.0}, r"but the gaps are 'recorded'"),
        ({"gaps": "scaled", "gap_scale": 0.0}, r"workload\.gap_scale is 0\.0; give a factor above 0"),
        ({"gaps": "scaled", "gap_scale": float("inf")}, r"workload\.gap_scale is inf"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        Policies.of({"name": "w", "format": "chat_jsonl", "paths": [], **settings})


def test_lengths_and_gaps() -> None:
    assert Policies().output_of(0) == 1
    assert Policies().output_of(70) == 70
    assert Policies(max_output_tokens=50).output_of(70) == 50
    assert Policies(output="fixed", output_tokens=5).output_of(70) == 5
    assert Policies().gap_of(3.0) is None
    assert Policies(gaps="recorded").gap_of(3.0) == 3.0
    assert Policies(gaps="recorded").gap_of(None) is None
    assert Policies(gaps="scaled", gap_scale=0.5).gap_of(3.0) == 1.5


def test_they_are_kept_in_a_plan_and_read_again() -> None:
    policies = Policies(fit="scale", sample=0.5, limit=3, gaps="scaled", gap_scale=0.1)
    assert Policies.of(policies.to_dict()) == policies
