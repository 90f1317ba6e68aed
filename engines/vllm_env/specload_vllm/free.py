"""A drafter that costs nothing: vLLM's `custom_class` method with K proposals from thin air.

With synthetic acceptance it shows what verification alone costs: the ceiling of every real drafter of the
same acceptance. Without, its proposals are as good as never accepted, which shows the cost of verification at
MAL 1.

vLLM asks a custom class on its V1 model runner only, on a GPU as on a CPU, and schedules synchronously for
it: what was sampled comes as lists of host memory, and nothing here depends on the device.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm.config import VllmConfig


class FreeDrafter:
    """Propose K tokens for every request that has just produced one.

    The proposals walk through the vocabulary from the last token with a stride, so that they are valid ids,
    cheap, the same in every run, and no token twice in one draft.
    """

    stride = 7919
    """A prime, so that it visits the whole vocabulary of any size it does not divide."""

    def __init__(self, vllm_config: "VllmConfig", *_: Any, **__: Any) -> None:
        speculative = vllm_config.speculative_config
        assert speculative is not None
        self.k = int(speculative.num_speculative_tokens)
        self.vocabulary = int(vllm_config.model_config.get_vocab_size())
        self.max_model_len = int(vllm_config.model_config.max_model_len)

    def load_model(self, *_: Any, **__: Any) -> None:
        """Load nothing: there is no model."""

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: Sequence[int],
        token_ids_cpu: Any,  # noqa: ARG002 - part of vLLM's interface
        slot_mappings: Any = None,  # noqa: ARG002 - part of vLLM's interface
    ) -> list[list[int]]:
        """Return K token ids for each request; none for one in prefill or at the context limit."""
        drafts: list[list[int]] = []
        for sampled, length in zip(sampled_token_ids, num_tokens_no_spec, strict=False):
            room = min(self.k, self.max_model_len - int(length))
            if not len(sampled) or room < 1:
                drafts.append([])
                continue
            last = int(sampled[-1])
            drafts.append([(last + self.stride * step) % self.vocabulary for step in range(1, room + 1)])
        return drafts
