import pytest

from engines.errors import EngineConfigError
from engines.vllm_flags import DEFAULTS, OWNED, PINNED, SWITCHES, VALUES, flag_words

QUIET = ("--no-async-scheduling", "--disable-uvicorn-access-log")


def test_scheduling_is_synchronous_in_every_arm() -> None:
    assert flag_words({}) == QUIET
    assert flag_words({"async_scheduling": True}) == ("--async-scheduling", QUIET[1])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"block_size": 32}, ("--block-size", "32")),
        ({"enforce_eager": True}, ("--enforce-eager",)),
        ({"enable_prefix_caching": False}, ("--no-enable-prefix-caching",)),
        ({"compilation_config": {"mode": 3, "a": [1]}}, ("--compilation-config", '{"a": [1], "mode": 3}')),
        ({"cudagraph_capture_sizes": [1, 2]}, ("--cudagraph-capture-sizes", "1", "2")),
        ({"gpu_memory_utilization": 0.9}, ("--gpu-memory-utilization", "0.9")),
    ],
)
def test_a_flag_is_written_as_vllm_reads_it(flags: dict[str, object], words: tuple[str, ...]) -> None:
    written = flag_words(flags)
    start = written.index(words[0])
    assert written[start : start + len(words)] == words
    assert len(written) == len(QUIET) + len(words)


@pytest.mark.parametrize(
    ("flags", "named", "remedy"),
    [
        ({"max_num_seq": 4}, "engine.flags.max_num_seq", "remove it"),
        ({"tensor_parallel_size": 2}, "engine.flags.tensor_parallel_size", "layout.tp"),
        ({"api_server_count": 4}, "engine.flags.api_server_count", "remove it"),
        ({"enforce_eager": "yes"}, "engine.flags.enforce_eager", "true or false"),
        ({"enforce_eager": 1}, "engine.flags.enforce_eager", "true or false"),
        ({"block_size": True}, "engine.flags.block_size", "give one"),
        ({"block_size": None}, "engine.flags.block_size", "give one"),
    ],
)
def test_a_wrong_flag_is_named_with_what_to_do(flags: dict[str, object], named: str, remedy: str) -> None:
    with pytest.raises(EngineConfigError, match=named) as caught:
        flag_words(flags)
    assert remedy in caught.value.message


def test_no_flag_is_in_two_tables() -> None:
    tables = (SWITCHES, VALUES, frozenset(OWNED), frozenset(PINNED))
    assert sum(map(len, tables)) == len(frozenset().union(*tables))
    assert set(DEFAULTS) <= SWITCHES
