"""GPUs the emulator knows: constants of public spec sheets, and the shares of them that serving code reaches.

Peaks are the vendor's figures for dense BF16 (half of those printed "with sparsity"), memory in decimal
gigabytes and link bandwidth per direction. Sources: NVIDIA A100 80GB, H100, H200, HGX B200, A10, L4 and L40S
data sheets, and the GA102 architecture paper (RTX 3090, with FP32 accumulation).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU. What a kernel really gets of a peak is the `*_efficiency` beside it."""

    name: str
    memory_bytes: float
    """Device memory."""
    bandwidth: float
    """Peak memory bandwidth in bytes/s."""
    flops: float
    """Peak dense BF16 in FLOP/s."""
    link_bandwidth: float
    """Bandwidth to the other GPUs in bytes/s, per direction: NVLink, or PCIe 4.0 x16 without it."""
    link_latency: float
    """Seconds of one all-reduce of almost nothing."""
    bandwidth_efficiency: float = 0.80
    """Share of the peak bandwidth that reading weights and KV reaches. With 0.72 of the peak compute, an H100
    running an 8B model has the step times of a published fit to measured ones (`costs.PUBLISHED_H100_8B`)
    within 10 %."""
    compute_efficiency: float = 0.72
    """Share of the peak compute that matrix products reach."""
    link_efficiency: float = 0.75
    """Share of the link bandwidth that a large all-reduce reaches. An assumption."""


def _gpu(name: str, *, gigabytes: float, gb_s: float, tflops: float, link_gb_s: float, link_us: float) -> Gpu:
    return Gpu(
        name=name,
        memory_bytes=gigabytes * 1e9,
        bandwidth=gb_s * 1e9,
        flops=tflops * 1e12,
        link_bandwidth=link_gb_s * 1e9,
        link_latency=link_us * 1e-6,
    )


GPUS: dict[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        _gpu("a10", gigabytes=24, gb_s=600, tflops=125, link_gb_s=32, link_us=20),
        _gpu("l4", gigabytes=24, gb_s=300, tflops=121, link_gb_s=32, link_us=20),
        _gpu("l40s", gigabytes=48, gb_s=864, tflops=362, link_gb_s=32, link_us=20),
        _gpu("rtx3090", gigabytes=24, gb_s=936, tflops=71, link_gb_s=32, link_us=20),
        _gpu("a100", gigabytes=80, gb_s=2039, tflops=312, link_gb_s=300, link_us=9),
        _gpu("h100", gigabytes=80, gb_s=3350, tflops=989.4, link_gb_s=450, link_us=7),
        _gpu("h200", gigabytes=141, gb_s=4800, tflops=989.4, link_gb_s=450, link_us=7),
        _gpu("b200", gigabytes=180, gb_s=8000, tflops=2250, link_gb_s=900, link_us=6),
    )
}
"""Name -> GPU. A new GPU is one line here."""
