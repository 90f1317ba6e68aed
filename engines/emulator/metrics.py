"""The Prometheus page of an emulated engine, under vLLM's metric names; every HELP line says `emulated`."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from engines.emulator.assembly import Assembly
from engines.emulator.live import LiveRank
from engines.emulator.stats import Histogram, Stats

_COUNTERS: tuple[tuple[str, str, Callable[[Stats], float]], ...] = (
    ("vllm:prompt_tokens", "prompt tokens, cached ones included", lambda s: s.prompt),
    (
        "vllm:prompt_tokens_cached",
        "prompt tokens from the prefix cache, at admission",
        lambda s: s.admitted_cached,
    ),
    ("vllm:generation_tokens", "generated tokens", lambda s: s.generation),
    ("vllm:prefix_cache_queries", "tokens looked up in the prefix cache", lambda s: s.prefix_queries),
    ("vllm:prefix_cache_hits", "tokens found in the prefix cache", lambda s: s.prefix_hits),
    ("vllm:num_preemptions", "requests preempted and recomputed", lambda s: s.preemptions),
    ("emulator:step_seconds", "modelled seconds inside steps", lambda s: s.step_seconds),
)
_SPECULATION: tuple[tuple[str, str, Callable[[Stats], float]], ...] = (
    ("vllm:spec_decode_num_drafts", "(request, step) pairs with drafts", lambda s: s.drafts),
    ("vllm:spec_decode_num_draft_tokens", "draft tokens", lambda s: s.draft_tokens),
    ("vllm:spec_decode_num_accepted_tokens", "accepted draft tokens", lambda s: s.accepted),
)
_HISTOGRAMS: tuple[tuple[str, str, Callable[[Stats], Histogram]], ...] = (
    ("vllm:time_to_first_token_seconds", "arrival to first token", lambda s: s.ttft),
    ("vllm:inter_token_latency_seconds", "interval between a request's output steps", lambda s: s.itl),
    ("vllm:e2e_request_latency_seconds", "arrival to last token", lambda s: s.e2e),
    ("vllm:iteration_tokens_total", "positions computed in a step", lambda s: s.step_tokens),
)


class EngineCollector(Collector):
    """Reads the ranks' counters when the page is asked for; nothing is kept twice."""

    def __init__(self, assembly: Assembly, ranks: Sequence[LiveRank]) -> None:
        self._assembly = assembly
        self._ranks = ranks
        self._model = assembly.config.model.name

    def collect(self) -> Iterable[Metric]:
        """Yield one family a metric, one series a rank (label `engine`)."""
        yield from self._counters()
        yield from self._by_source()
        yield from self._gauges()
        for name, help_text, histogram in _HISTOGRAMS:
            family = HistogramMetricFamily(name, _help(help_text), labels=["model_name", "engine"])
            for labels, rank in self._labelled():
                one = histogram(rank.scheduler.stats)
                family.add_metric(labels, _buckets(one), one.total)
            yield family
        yield self._cache_info()

    def _labelled(self) -> Iterable[tuple[list[str], LiveRank]]:
        return (([self._model, str(index)], rank) for index, rank in enumerate(self._ranks))

    def _counters(self) -> Iterable[Metric]:
        speculative = self._assembly.config.drafter.k > 0
        for name, help_text, value in _COUNTERS + (_SPECULATION if speculative else ()):
            family = CounterMetricFamily(name, _help(help_text), labels=["model_name", "engine"])
            for labels, rank in self._labelled():
                family.add_metric(labels, value(rank.scheduler.stats))
            yield family
        slips = CounterMetricFamily(
            "emulator:slipped_seconds",
            _help("time lost because the process fell behind"),
            labels=["model_name", "engine"],
        )
        for labels, rank in self._labelled():
            slips.add_metric(labels, rank.slipped_seconds)
        yield slips

    def _by_source(self) -> Iterable[Metric]:
        source = CounterMetricFamily(
            "vllm:prompt_tokens_by_source",
            _help("prompt tokens by source"),
            labels=["model_name", "engine", "source"],
        )
        finished = CounterMetricFamily(
            "vllm:request_success",
            _help("ended requests"),
            labels=["model_name", "engine", "finished_reason"],
        )
        positions = CounterMetricFamily(
            "vllm:spec_decode_num_accepted_tokens_per_pos",
            _help("accepted draft tokens by position"),
            labels=["model_name", "engine", "position"],
        )
        for labels, rank in self._labelled():
            stats = rank.scheduler.stats
            source.add_metric([*labels, "local_compute"], stats.prompt - stats.prompt_cached)
            source.add_metric([*labels, "local_cache_hit"], stats.prompt_cached)
            finished.add_metric([*labels, "length"], stats.succeeded)
            finished.add_metric([*labels, "abort"], stats.aborted)
            for position, count in enumerate(stats.accepted_per_position):
                positions.add_metric([*labels, str(position)], count)
        yield source
        yield finished
        if self._assembly.config.drafter.k:
            yield positions

    def _gauges(self) -> Iterable[Metric]:
        running = _gauge("vllm:num_requests_running", "requests in the batch")
        waiting = _gauge("vllm:num_requests_waiting", "requests queued")
        usage = _gauge("vllm:kv_cache_usage_perc", "share of KV blocks in use, 0 to 1")
        for labels, rank in self._labelled():
            running.add_metric(labels, len(rank.scheduler.running))
            waiting.add_metric(labels, len(rank.scheduler.waiting))
            usage.add_metric(labels, rank.scheduler.pool.held / rank.scheduler.pool.total)
        yield from (running, waiting, usage)

    def _cache_info(self) -> Metric:
        flags, config = self._assembly.flags, self._assembly.config
        fixed = {
            "block_size": str(flags.block_size),
            "num_gpu_blocks": str(sum(rank.scheduler.pool.total for rank in self._ranks)),
            "kv_cache_size_tokens": str(self._assembly.kv_tokens),
            "kv_cache_max_concurrency": f"{self._assembly.kv_tokens / config.model.max_context:.2f}",
            "gpu_memory_utilization": str(flags.gpu_memory_utilization),
            "enable_prefix_caching": str(flags.enable_prefix_caching),
        }
        family = GaugeMetricFamily(
            "vllm:cache_config_info", _help("KV-cache configuration"), labels=["engine", *fixed]
        )
        for index in range(len(self._ranks)):
            family.add_metric([str(index), *fixed.values()], 1)
        return family


def metrics_page(assembly: Assembly, ranks: Sequence[LiveRank]) -> Callable[[], bytes]:
    """Return a function that renders the page."""
    registry = CollectorRegistry()
    registry.register(EngineCollector(assembly, ranks))
    return lambda: generate_latest(registry)


def _help(text: str) -> str:
    return f"emulated: {text}"


def _gauge(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _help(help_text), labels=["model_name", "engine"])


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    total = 0
    rows: list[tuple[str, float]] = []
    for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        total += count
        rows.append((bound, total))
    return rows
