"""The names under which a cell's figures are kept, each with its unit and definition.

One table for everybody: `jobs/measurement.py` computes them, MLflow shows them, `analysis` reads them, the
report prints the definition beside the number. A `None` value in a result means that its source was absent.
"""

TURN_SLICES = {"0": "turn 0", "1": "turn 1", "2": "turn 2", "3_up": "turns from 3"}
"""Slice of turn numbers -> words for it."""
CONTEXT_SLICES = {
    "0_1k": "below 1,000 tokens of context",
    "1k_4k": "1,000 to 4,000 tokens of context",
    "4k_16k": "4,000 to 16,000 tokens of context",
    "16k_64k": "16,000 to 64,000 tokens of context",
    "64k_up": "64,000 tokens of context and more",
}
"""Bucket of context lengths (prompt + answer so far) -> words for it."""

METRICS: dict[str, str] = {
    "throughput/total_tok_s": "tok/s in the steady window: prompt (cached and uncached) + output tokens",
    "throughput/computed_tok_s": "tok/s in the steady window: uncached prompt + output tokens",
    "throughput/output_tok_s": "tok/s in the steady window: output tokens",
    "throughput/output_peak_tok_s": "largest output rate of the window's equal bins of one second (up to two "
    "in a short window; they tile it, so it is never below the average), tokens counted chunk by chunk",
    "throughput/total_tok_s_per_device": "throughput/total_tok_s over the devices of the slice",
    "throughput/output_tok_s_per_device": "throughput/output_tok_s over the devices of the slice",
    "fixed_work/total_tok_s": "all tokens of the replay over its makespan, drain included",
    "fixed_work/computed_tok_s": "uncached prompt + output tokens of the replay over its makespan",
    "fixed_work/output_tok_s": "output tokens of the replay over its makespan",
    "fixed_work/seconds": "makespan: first dispatch to last end",
    "window/seconds": "steady window: every user has finished a conversation, to the first user without work "
    "(open loop: from the end of the first wave of conversations to the last arrival)",
    "window/drain_share": "share of the makespan after the steady window",
    "window/occupancy": "mean users in flight or thinking in the window over C (Little's law: near 1)",
    "window/in_flight": "mean requests in flight in the window",
    "window/turn_overlap": "turns in this cell's window and in the opening baseline's, over turns in either",
    "user/speed_tok_s": "user speed: sum(n - n_first) / sum(last - first), pooled over the cell",
    "user/speed_p50_tok_s": "user speed of single sessions (a conversation in an epoch); median",
    "user/speed_p5_tok_s": "user speed of single sessions, 5th percentile: the slow ones",
    "request/speed_p50_tok_s": "decode speed of single requests: (n - n_first) / (last - first); median",
    "request/speed_p5_tok_s": "decode speed of single requests, 5th percentile: the slow ones",
    "session/count": "sessions whose every turn was answered",
    "session/time_p50_s": "session time: first dispatch (open loop: arrival) to last token; median",
    "session/time_p95_s": "session time, 95th percentile",
    "latency/ttft_p50_ms": "time to first token: first token - dispatch (open loop: - scheduled); median "
    "(all percentiles by linear interpolation, Hyndman and Fan's method 7)",
    "latency/ttft_p95_ms": "time to first token, 95th percentile",
    "latency/ttft_p99_ms": "time to first token, 99th percentile",
    "latency/tpot_p50_ms": "time per output token: (last - first) / (n - n_first) of a request; median",
    "latency/tpot_p95_ms": "time per output token, 95th percentile",
    "latency/itl_p50_ms": "inter-token latency: each chunk gap spread over its tokens; median over tokens",
    "latency/itl_p99_ms": "inter-token latency, 99th percentile",
    "latency/icl_p50_ms": "inter-chunk latency: gap between token-carrying chunks; median",
    "latency/icl_p99_ms": "inter-chunk latency, 99th percentile",
    "latency/e2el_p50_ms": "end-to-end latency: last token - dispatch (open loop: - scheduled); median",
    "latency/e2el_p95_ms": "end-to-end latency, 95th percentile",
    "latency/decode_share": "decode share f: sum(last - first) / sum(E2EL)",
    "slo/goodput_share": "requests that succeeded within all limits of design.slo, over all requests sent; a "
    "failure is a miss, an answer in one chunk has no TPOT and meets its limit; absent without limits",
    "slo/goodput_req_s": "requests within the limits of design.slo, sent in the steady window, a second; "
    "absent without limits",
    "spec/mal": "mean acceptance length: 1 + accepted / drafts, deltas over all ranks; 1 for a baseline",
    "spec/drafts": "verification steps: (request, step) pairs with at least one draft token",
    "spec/mal_of_requests": "the same from the engine's accounts of single requests, where it gives them",
    "spec/acceptance_rate": "accepted / drafted tokens",
    "spec/tokens_per_step": "tokens per decode step over all steps, drafted or not",
    "spec/requested_mal": "mean acceptance length that the synthetic acceptance asks for",
    "step/mean_ms": "mean interval between a request's output steps (engine's ITL sum / count)",
    "cache/hit_rate": "cached / all prompt tokens, engine counters",
    "cache/client_cached_tokens": "cached prompt tokens reported in usage, summed",
    "cache/first_turn_cached_tokens": "cached prompt tokens of first turns, summed",
    "cache/first_turn_expected_least": "cached tokens that first turns had to meet, by the order of sending",
    "cache/first_turn_expected_most": "cached tokens that first turns could meet, by the order of sending",
    "cache/ideal_hit_rate": "cached / all prompt tokens that an infinite cache, empty at first, could reach",
    "kv/capacity_tokens": "KV-cache capacity of the slice in tokens",
    "kv/capacity_tokens_per_rank": "KV-cache capacity of one data-parallel rank in tokens: the smallest pool",
    "kv/blocks": "KV blocks of the slice, over all ranks and replicas",
    "kv/block_size": "tokens of a KV block",
    "kv/ranks": "KV pools of the slice: data-parallel ranks times replicas",
    "kv/context_mean": "tokens of a conversation at its longest turn, prompt and answer; mean",
    "kv/context_largest": "tokens of the longest turn of the replay, prompt and answer",
    "kv/conversations_mean": "conversations of mean context that fit at once, in whole blocks of one pool, "
    "with the slots of one step's drafts and without what they share",
    "kv/conversations_largest": "the same for conversations of the largest context",
    "kv/usage_peak": "largest sampled share of the KV cache in use",
    "engine/preemptions": "requests preempted and recomputed",
    "engine/waiting_peak": "largest sampled number of queued requests",
    "engine/waiting_share": "share of the steady window's samples in which a request waited for room (whole "
    "replay without a window; absent with fewer than two samples)",
    "tokens/client_output": "output tokens counted by the client",
    "tokens/engine_output": "output tokens counted by the engine",
    "tokens/client_prompt": "prompt tokens counted by the client",
    "tokens/engine_prompt": "prompt tokens counted by the engine",
    "tokens/client_computed": "uncached prompt + output tokens counted by the client",
    "tokens/engine_computed": "locally computed prompt + generated tokens counted by the engine",
    "requests/total": "requests sent",
    "requests/failed": "requests that failed; they stay out of latencies and throughputs",
    "requests/single_chunk": "answers in one chunk; left out of speeds",
    "client/loop_lag_p99_ms": "event-loop lag of the load process, 99th percentile",
    "client/send_lag_p99_ms": "from the decision to send to the last byte in the socket, 99th percentile",
    "client/schedule_lag_p99_ms": "from when a request was due to its dispatch, 99th percentile",
    "client/cpu_share": "CPU of the busiest load process in cores",
    "client/peak_rss_mib": "peak memory of the largest load process",
    "client/processes": "load processes that shared the work",
    "energy/joules_window": "energy of all GPUs in the steady window (NVML's counters, interpolated)",
    "energy/joules_per_output_token": "the same over the output tokens of the window",
    "gpu/power_mean_w": "mean power in the steady window, summed over the GPUs",
    "gpu/sm_clock_mean_mhz": "mean SM clock in the steady window, over the GPUs",
    "gpu/throttled_share": "share of the steady window in which power, heat or the board held clocks down",
    "gpu/memory_peak_gib": "largest sampled memory in use on one GPU in the steady window",
    "host/cpu_mean": "mean share of the host's cores in use in the steady window",
    "warmup/rounds": "warm-up rounds before the replay",
    "warmup/settled": "1: the step time had settled; 0: not; absent: too few steps to tell",
    "warmup/step_ms": "median chunk gap of the last look at the warm-up, at full batch",
    **{
        f"turn/ttft_p50_ms_{key}": f"time to first token, median, {words}"
        for key, words in TURN_SLICES.items()
    },
    **{f"turn/speed_tok_s_{key}": f"user speed, {words}" for key, words in TURN_SLICES.items()},
    **{f"turn/cached_share_{key}": f"cached / prompt tokens, {words}" for key, words in TURN_SLICES.items()},
    **{f"context/speed_tok_s_{key}": f"decode speed, {words}" for key, words in CONTEXT_SLICES.items()},
    **{
        f"context/tokens_per_chunk_{key}": f"tokens a chunk after the first, {words}"
        for key, words in CONTEXT_SLICES.items()
    },
    **{
        f"context/mal_{key}": f"mean acceptance length, {words} in the middle of the answer"
        for key, words in CONTEXT_SLICES.items()
    },
}
"""Name -> unit and definition. Besides, by draft position i from 1: `spec/acceptance_pos_<i>` (unconditional)
and `spec/conditional_pos_<i>` (of the drafts whose earlier positions were accepted)."""
