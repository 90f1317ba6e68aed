"""Models the emulator knows, by the shapes of their public configuration files.

Sizes follow from the shapes; a test holds them to the published parameter counts.
"""

from dataclasses import dataclass

BYTES = 2
"""Bytes of a weight and of a KV element: BF16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A dense decoder-only transformer with grouped-query attention and a gated MLP."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool = False
    """Whether the output projection is the input embedding."""

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer, norms left out."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the input embedding (a look-up: neither read whole nor multiplied in a step)."""
        return self.vocabulary * self.hidden

    @property
    def matrix_parameters(self) -> int:
        """Parameters that every step reads and multiplies: the layers and the output projection."""
        return self.layers * self.layer_parameters + self.embedding_parameters

    @property
    def parameters(self) -> int:
        """All parameters held in memory."""
        return self.matrix_parameters + (0 if self.tied else self.embedding_parameters)

    def kv_bytes(self, tp: int) -> int:
        """Return KV bytes of one token on one device; heads that do not divide are replicated."""
        return 2 * self.layers * -(-self.kv_heads // tp) * self.head_dim * BYTES

    def attention_flops(self, pairs: float) -> float:
        """Return FLOPs of `pairs` (query, key) pairs: scores and weighted sum, two FLOPs a multiply-add."""
        return 4.0 * self.layers * self.heads * self.head_dim * pairs


ARCHITECTURES: dict[str, Architecture] = {
    model.name: model
    for model in (
        Architecture(
            name="llama-3.1-8b",
            layers=32,
            hidden=4096,
            heads=32,
            kv_heads=8,
            head_dim=128,
            intermediate=14336,
            vocabulary=128256,
        ),
        Architecture(
            name="llama-3.1-70b",
            layers=80,
            hidden=8192,
            heads=64,
            kv_heads=8,
            head_dim=128,
            intermediate=28672,
            vocabulary=128256,
        ),
        Architecture(
            name="llama-3.2-1b",
            layers=16,
            hidden=2048,
            heads=32,
            kv_heads=8,
            head_dim=64,
            intermediate=8192,
            vocabulary=128256,
            tied=True,
        ),
        Architecture(
            name="llama-3.2-3b",
            layers=28,
            hidden=3072,
            heads=24,
            kv_heads=8,
            head_dim=128,
            intermediate=8192,
            vocabulary=128256,
            tied=True,
        ),
        Architecture(
            name="qwen2.5-7b",
            layers=28,
            hidden=3584,
            heads=28,
            kv_heads=4,
            head_dim=128,
            intermediate=18944,
            vocabulary=152064,
        ),
        Architecture(
            name="qwen3-0.6b",
            layers=28,
            hidden=1024,
            heads=16,
            kv_heads=8,
            head_dim=128,
            intermediate=3072,
            vocabulary=151936,
            tied=True,
        ),
        Architecture(
            name="qwen3-8b",
            layers=36,
            hidden=4096,
            heads=32,
            kv_heads=8,
            head_dim=128,
            intermediate=12288,
            vocabulary=151936,
        ),
        Architecture(
            name="qwen3-32b",
            layers=64,
            hidden=5120,
            heads=64,
            kv_heads=8,
            head_dim=128,
            intermediate=25600,
            vocabulary=151936,
        ),
    )
}
"""Name -> shapes. A new model is one entry here."""
