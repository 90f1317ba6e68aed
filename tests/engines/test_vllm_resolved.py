from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import CacheStrategy, Decode
from engines.vllm import VllmEngine
from engines.vllm_resolved import comparable, contradictions


def test_configuration_and_environment_stay_and_the_machine_goes() -> None:
    info = {
        "vllm_config.model_config.dtype": "torch.float32",
        "vllm_env.VLLM_USE_V2_MODEL_RUNNER": False,
        "system_env.cpu_info": "...",
    }
    assert comparable(info) == {
        "model_config.dtype": "torch.float32",
        "env.VLLM_USE_V2_MODEL_RUNNER": False,
    }


def test_two_starts_of_one_engine_compare_equal() -> None:
    first, second = (
        {
            "vllm_config.instance_id": number,
            "vllm_config.parallel_config._coord_store_port": number,
            "vllm_config.parallel_config._data_parallel_master_port_list": [number],
            "vllm_config.parallel_config.tensor_parallel_size": 2,
            "vllm_config.speculative_config.draft_model_config.hf_overrides": f"<f at 0x7f{number:x}>",
            "vllm_config.speculative_config.draft_parallel_config.data_parallel_master_port": number,
            "vllm_config.speculative_config.target_parallel_config._coord_store_port": number,
            "vllm_env.VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME": f"shm_{number}",
        }
        for number in (50_587, 36_455)
    )
    assert comparable(first) == comparable(second)
    assert comparable(first) == {
        "parallel_config.tensor_parallel_size": 2,
        "speculative_config.draft_model_config.hf_overrides": "<f>",
    }


def test_only_what_follows_from_a_drafter_may_differ_in_a_pair() -> None:
    config = EngineConfig(engine="vllm", version="0.32.0", model=Model(name="m"))
    allowed = tuple(VllmEngine().drafter_keys(config))
    for key in (
        "speculative_config.num_speculative_tokens",
        "cache_config.num_gpu_blocks",
        "compilation_config.cudagraph_capture_sizes",
    ):
        assert key.startswith(allowed), key
    for key in (
        "scheduler_config.async_scheduling",
        "scheduler_config.max_num_batched_tokens",
        "cache_config.block_size",
        "cache_config.enable_prefix_caching",
        "env.VLLM_USE_V2_MODEL_RUNNER",
        "attention_config.backend",
    ):
        assert not key.startswith(allowed), key


def test_a_server_of_another_configuration_is_told_from_the_ordered_one() -> None:
    config = EngineConfig(
        engine="vllm",
        version="0.32.0",
        model=Model(name="m", max_context=2048),
        drafter=Drafter(method="ngram", k=3),
        layout=Layout(tp=2),
    )
    resolved = {
        "model_config.served_model_name": "m",
        "model_config.max_model_len": 2048,
        "model_config.seed": 0,
        "parallel_config.tensor_parallel_size": 2,
        "parallel_config.data_parallel_size": 1,
        "parallel_config.pipeline_parallel_size": 1,
        "speculative_config.num_speculative_tokens": 3,
    }
    engine = VllmEngine()
    assert list(engine.contradictions(config, resolved)) == []
    for key, ordered in resolved.items():
        assert engine.contradictions(config, {**resolved, key: 7}) == [f"its {key} is 7, not {ordered!r}"]
    plain = {key: value for key, value in resolved.items() if not key.startswith("speculative_config")}
    assert list(engine.contradictions(config.baseline(), {**plain, "speculative_config": None})) == []
    assert len(engine.contradictions(config.baseline(), resolved)) == 1


def test_a_setting_that_vllm_gave_up_contradicts_the_one_that_was_asked_for() -> None:
    """Some models have no prefix cache or chunked prefill: vLLM says so in its log only, and goes on."""
    config = EngineConfig(
        engine="vllm",
        version="0",
        model=Model(name="m"),
        cache=CacheStrategy(prefix_caching=True),
        decode=Decode(chunked_prefill=True, max_num_seqs=8),
    )
    kept = {
        "model_config.served_model_name": "m",
        "model_config.max_model_len": 4096,
        "model_config.seed": 0,
        "parallel_config.tensor_parallel_size": 1,
        "parallel_config.data_parallel_size": 1,
        "parallel_config.pipeline_parallel_size": 1,
        "cache_config.enable_prefix_caching": True,
        "scheduler_config.enable_chunked_prefill": True,
        "scheduler_config.max_num_seqs": 8,
    }
    assert contradictions(config, kept) == []
    given_up = {**kept, "cache_config.enable_prefix_caching": False}
    assert contradictions(config, given_up) == ["its cache_config.enable_prefix_caching is False, not True"]
