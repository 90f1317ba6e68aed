"""Findings on the GPUs of this machine: are they there, free, and readable?"""

from collections.abc import Iterator

from jobs.gpu_facts import GpuFacts, NodeGpus
from orchestrator.doctor import MISSING, NOTE, OK, Finding

CROWDED_MIB = 1024.0
"""Memory in use on a GPU from which somebody has to be using it."""


def device_findings(node: NodeGpus) -> Iterator[Finding]:
    """Yield what a measurement has to know about each GPU; one finding where there is none."""
    if not node.gpus:
        remedy = "engine=vllm_cpu or engine=emulator checks the rest here"
        yield Finding(what="GPUs", state=NOTE, detail=f"none: {node.why or 'no device'}", remedy=remedy)
        return
    yield Finding(
        what="driver", state=OK, detail=f"{node.driver or 'unknown'}, CUDA up to {node.cuda or 'unknown'}"
    )
    for gpu in node.gpus:
        yield from _gpu(gpu)


def _gpu(gpu: GpuFacts) -> Iterator[Finding]:
    what = f"GPU {gpu.index}"
    if gpu.total_mib is None or gpu.used_mib is None:
        remedy = "nobody can tell that an engine gave its memory back: arms would disturb each other"
        yield Finding(what=what, state=MISSING, detail=f"{gpu.name}: memory unreadable", remedy=remedy)
    else:
        yield Finding(
            what=what,
            state=OK,
            detail=f"{gpu.name}, {gpu.total_mib / 1024:.0f} GiB, {gpu.used_mib:.0f} MiB in use, {gpu.uuid}",
        )
    yield _tenants(what, gpu)
    if gpu.mig:
        yield Finding(
            what=f"{what} MIG",
            state=MISSING,
            detail="on",
            remedy="slices share caches and power: turn MIG off, or compare on this very slice only",
        )
    if gpu.persistent is False:
        yield Finding(
            what=f"{what} persistence",
            state=NOTE,
            detail="off",
            remedy="the first start after an idle time is slower; `nvidia-smi -pm 1` keeps it ready",
        )
    yield _readable(what, gpu)
    if gpu.throttled:
        yield Finding(
            what=f"{what} clocks",
            state=NOTE,
            detail=f"held down now: {', '.join(gpu.throttled)}",
            remedy="look at cooling and power limit; cells measured meanwhile carry a caveat",
        )


def _tenants(what: str, gpu: GpuFacts) -> Finding:
    what = f"{what} tenants"
    if gpu.tenants is None:
        remedy = "who else uses the GPU cannot be told: look at `nvidia-smi` before a sweep"
        return Finding(what=what, state=NOTE, detail="unreadable", remedy=remedy)
    if gpu.tenants:
        named = ", ".join(
            f"{tenant.name or 'unknown'} (process {tenant.pid}"
            + (f", {tenant.mib:.0f} MiB)" if tenant.mib is not None else ")")
            for tenant in gpu.tenants
        )
        remedy = "they take memory and time from what is measured: end them, or use other GPUs"
        return Finding(what=what, state=MISSING, detail=named, remedy=remedy)
    if gpu.used_mib is not None and gpu.used_mib > CROWDED_MIB:
        remedy = "a process in another container, or memory that an ended one left: look at `nvidia-smi`"
        return Finding(what=what, state=MISSING, detail=f"unseen, {gpu.used_mib:.0f} MiB held", remedy=remedy)
    return Finding(what=what, state=OK, detail="none")


def _readable(what: str, gpu: GpuFacts) -> Finding:
    if not gpu.unreadable:
        detail = "energy, power, clocks, temperature and throttle reasons can be read"
        return Finding(what=f"{what} sensors", state=OK, detail=detail)
    detail = "; ".join(f"{source}: {words}" for source, words in gpu.unreadable.items())
    remedy = "those columns stay empty, and what is judged by them is not judged"
    return Finding(what=f"{what} sensors", state=NOTE, detail=detail, remedy=remedy)
