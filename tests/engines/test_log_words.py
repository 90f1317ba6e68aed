import pytest

from engines.log_words import last_words

VLLM = """
(APIServer pid=238) WARNING 11-30 15:48:22 [utils.py:255] errors like `OSError: [Errno 24] Too many`
(EngineCore pid=239) ERROR 11-30 15:48:58 [core.py:1510] ValueError: 0.02 GiB of KV cache are needed
Traceback (most recent call last):
ValueError: 0.02 GiB of KV cache are needed
(APIServer pid=238) Traceback (most recent call last):
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects
  warnings.warn('resource_tracker: There appear to be %d '
"""
NEEDED = "; its log says: ValueError: 0.02 GiB of KV cache are needed"


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        (VLLM, NEEDED),
        (VLLM[: VLLM.index("Traceback")], NEEDED),
        ("torch.OutOfMemoryError: of CUDA\nbye\n", "; its log says: torch.OutOfMemoryError: of CUDA"),
        ("loading\n  usage: unrecognized: --x\n\n", "; its log ends with: usage: unrecognized: --x"),
        ("the first OSError: is a warning's\nlast", "; its log ends with: last"),
        ("\n \n", "; its log is empty"),
    ],
)
def test_the_words_are_those_of_the_cause(tail: str, words: str) -> None:
    assert last_words(tail) == words
