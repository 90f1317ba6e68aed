"""The drafter without cost, as vLLM's V1 model runner calls it."""

from types import SimpleNamespace

import numpy as np

from engines.vllm_env.specload_vllm.free import FreeDrafter


def drafter(k: int = 3) -> FreeDrafter:
    """A drafter for a vocabulary of 100 tokens and 20 tokens of context."""
    model = SimpleNamespace(get_vocab_size=lambda: 100, max_model_len=20)
    config = SimpleNamespace(speculative_config=SimpleNamespace(num_speculative_tokens=k), model_config=model)
    return FreeDrafter(config)


def test_every_request_that_sampled_gets_k_valid_proposals() -> None:
    # The arrays of a batch are longer than it: they hold every request that could run.
    drafts = drafter().propose([[5], [5, 99], []], np.array([8, 9, 4, 0, 0]), np.zeros((5, 20)))
    assert [len(draft) for draft in drafts] == [3, 3, 0]
    assert all(0 <= token < 100 for draft in drafts for token in draft)
    assert all(len(set(draft)) == len(draft) for draft in drafts)
    assert drafts == drafter().propose([[5], [5, 99], []], np.array([8, 9, 4]), None, slot_mappings={})


def test_nothing_is_proposed_beyond_the_context() -> None:
    drafts = drafter().propose([[1], [1], [1], [1]], np.array([16, 18, 19, 20]), None)
    assert [len(draft) for draft in drafts] == [3, 2, 1, 0]
