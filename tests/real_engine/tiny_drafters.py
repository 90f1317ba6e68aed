"""Runs inside the engine's environment: let every tiny drafter draft, all in one process.

Arguments: the folder of the tiny models, then drafters as `NAME=JSON`, a name and vLLM's speculative
configuration (`model` is a folder in it). Prints JSON: by drafter the steps and the drafts accepted at each
position, and the first answer.
"""

import gc
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # no process for the engine, and none for its worker

from vllm import LLM, SamplingParams
from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

REQUESTS = 16
TOKENS = 200


def measured(folder: Path, speculation: dict[str, Any] | None) -> dict[str, Any]:
    own = speculation is not None and speculation["method"] == "mtp"
    if speculation is not None and "model" in speculation:
        speculation = {**speculation, "model": str(folder / Path(speculation["model"]).name)}
    engine = LLM(
        model=str(folder / ("mtp" if own else "target")),
        speculative_config=speculation,
        dtype="float32",
        enforce_eager=True,
        max_model_len=1024,
        max_num_seqs=REQUESTS,
        max_num_batched_tokens=2048,
        block_size=32,
        kv_cache_memory_bytes=268_435_456,
        disable_log_stats=False,
    )
    prompts = [random.Random(seed).sample(range(10, 4000), 24) for seed in range(REQUESTS)]
    options = SamplingParams(temperature=0, max_tokens=TOKENS, ignore_eos=True)
    answers = engine.generate([{"prompt_token_ids": prompt} for prompt in prompts], options, use_tqdm=False)
    found = {metric.name: metric for metric in engine.get_metrics()}
    result = {"answer": list(answers[0].outputs[0].token_ids)}
    if "vllm:spec_decode_num_drafts" in found:
        result["steps"] = found["vllm:spec_decode_num_drafts"].value
        result["accepted"] = found["vllm:spec_decode_num_accepted_tokens_per_pos"].values
    del engine
    gc.collect()
    cleanup_dist_env_and_memory()
    return result


if __name__ == "__main__":
    models = Path(sys.argv[1])
    drafters = dict(word.split("=", 1) for word in sys.argv[2:])
    json.dump({name: measured(models, json.loads(text)) for name, text in drafters.items()}, sys.stdout)
