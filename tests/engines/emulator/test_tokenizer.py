import string

from hypothesis import given, settings
from hypothesis import strategies as st

from engines.emulator.tokenizer import VOCABULARY, EmulatedTokenizer

TOKENIZER = EmulatedTokenizer()
PROSE = (
    "The deployment failed because the readiness probe timed out after thirty seconds; check whether "
    "the service listens on port 8080, then look at the rollout history and undo the last revision."
)


def test_ids_never_change():
    # Frozen: the digest of every workload bound with this tokenizer depends on them.
    assert TOKENIZER.encode("Hello, world 42") == [5989, 23035, 20874, 7987]
    assert TOKENIZER.render([("user", "Hello")]) == [1, 4, 5989, 2, 5]
    assert TOKENIZER.digest == "652055b0a5fc33631c052eccdcac6aa602026ff447acfcd7d6da041b37b1b3e1"


def test_about_four_characters_a_token():
    assert 3.3 <= len(PROSE) / len(TOKENIZER.encode(PROSE)) <= 4.7


@settings(deadline=None)
@given(st.text())
def test_every_text_has_ids_in_range_outside_the_markers(text: str):
    ids = TOKENIZER.encode(text)
    assert all(16 <= token < VOCABULARY for token in ids)
    assert bool(ids) == bool(text)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "tool", "critic"]), st.text())))
def test_a_longer_chat_starts_with_the_shorter_one(messages: list[tuple[str, str]]):
    shorter = TOKENIZER.render(messages)
    longer = TOKENIZER.render([*messages, ("assistant", "fine"), ("user", "more")])
    assert longer[: len(shorter)] == shorter
    assert shorter[-1] == longer[-1] == 5


def test_roles_differ():
    assert (
        len({tuple(TOKENIZER.render([(role, "x")])) for role in ("system", "user", "assistant", "tool")}) == 4
    )


def test_stand_in_text_needs_no_json_escapes():
    allowed = set(string.ascii_lowercase + " ")
    assert all(set(TOKENIZER.text(token)) <= allowed for token in range(VOCABULARY))
