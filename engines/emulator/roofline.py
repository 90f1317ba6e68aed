"""Step time of a named GPU and model: an additive roofline.

Reading (weights, KV) and computing are *added*, not overlapped: published linear fits to measured step times
(`costs.PUBLISHED_H100_8B`) grow with every token from batch 1 on, as a sum does and a maximum does not.

    t = [weights + KV read] / bandwidth + FLOPs / compute + all-reduces + drafting + scheduling
"""

from dataclasses import dataclass

from engines.emulator.drafters import DrafterCost
from engines.emulator.hardware import Gpu
from engines.emulator.load import StepLoad
from engines.emulator.models import BYTES, Architecture

SCHEDULER_SECONDS = 1.2e-3
"""Fixed cost of a step outside the model: scheduling, input preparation, sampling (published 1.207 ms)."""
SCHEDULER_SECONDS_PER_REQUEST = 3e-6
"""Its part per request in the step. An assumption."""
DRAFT_PASS_SECONDS = 0.1e-3
"""Launches and sampling of one pass of a draft network. An assumption."""
VERIFY_SECONDS = 0.2e-3
"""Rejection sampling and its bookkeeping, once a speculative step. An assumption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Step-time model of one rank: `tp` GPUs that run one target, and perhaps a drafter."""

    gpu: Gpu
    model: Architecture
    tp: int
    drafter: DrafterCost | None

    def seconds(self, load: StepLoad) -> float:
        """Return the time of one step in seconds."""
        total = self._forward(load) + SCHEDULER_SECONDS
        total += SCHEDULER_SECONDS_PER_REQUEST * load.requests
        if self.drafter is not None:
            total += self._drafting(load, self.drafter)
        return total

    def _forward(self, load: StepLoad) -> float:
        weights = self.model.matrix_parameters * BYTES / self.tp
        read = weights + self.model.kv_bytes(self.tp) * load.context
        # One query of each decoding position meets all its context; prefill pairs are counted by the
        # scheduler.
        per_request = load.decode_tokens / load.requests if load.requests else 0.0
        pairs = load.decode_context * per_request + load.prefill_pairs
        flops = 2.0 * self.model.matrix_parameters * load.tokens + self.model.attention_flops(pairs)
        return (
            self._read(read)
            + self._compute(flops / self.tp)
            + self._all_reduces(self.model.layers, self.model.hidden, load.tokens, self.tp)
        )

    def _drafting(self, load: StepLoad, drafter: DrafterCost) -> float:
        seconds = (
            drafter.host_seconds + drafter.host_seconds_per_request * load.drafted if load.drafted else 0.0
        )
        if load.drafted:
            seconds += VERIFY_SECONDS
        if not drafter.passes:
            return seconds
        weights = drafter.matrix_parameters * BYTES / drafter.tp
        if load.drafted:
            read = weights + drafter.kv_bytes / drafter.tp * load.decode_context
            flops = 2.0 * drafter.matrix_parameters * load.drafted / drafter.tp
            one = self._read(read) + self._compute(flops) + DRAFT_PASS_SECONDS
            one += self._all_reduces(drafter.layers, drafter.hidden, load.drafted, drafter.tp)
            seconds += load.k * one  # of a network each pass proposes one token
        if load.prefill_tokens:
            # The drafter has to read the prompt too; its weights are already paid when it also drafts.
            seconds += self._compute(2.0 * drafter.matrix_parameters * load.prefill_tokens / drafter.tp)
            seconds += 0.0 if load.drafted else self._read(weights) + DRAFT_PASS_SECONDS
        return seconds

    def _read(self, num_bytes: float) -> float:
        return num_bytes / (self.gpu.bandwidth * self.gpu.bandwidth_efficiency)

    def _compute(self, flops: float) -> float:
        return flops / (self.gpu.flops * self.gpu.compute_efficiency)

    def _all_reduces(self, layers: int, hidden: int, tokens: int, tp: int) -> float:
        if tp == 1:
            return 0.0
        # Ring all-reduce: every device sends and receives 2 (tp - 1) / tp of the message; two a layer.
        message = tokens * hidden * BYTES
        transfer = 2.0 * (tp - 1) / tp * message / (self.gpu.link_bandwidth * self.gpu.link_efficiency)
        return 2 * layers * (self.gpu.link_latency + transfer)
