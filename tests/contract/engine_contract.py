"""What every engine adapter has to keep, as one test class that each implementation inherits."""

import concurrent.futures
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.base import Engine, Site
from engines.counters import Counters
from engines.errors import EngineConfigError, EngineStartError
from engines.launch import RunningEngine, start_engine
from engines.ports import lease_port
from engines.spec import EngineConfig

Start = Callable[[EngineConfig], AbstractContextManager[RunningEngine]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One streamed completion as a client sees it."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    growth: tuple[int, ...]
    """Completion tokens after each chunk that carries a choice."""


def complete(
    running: RunningEngine, prompt: Sequence[int], *, tokens: int, salt: str | None = None, seed: int = 1
) -> Answer:
    """Stream one completion with the fields that every measured request carries."""
    body = {
        "model": running.server.config.model.name,
        "prompt": list(prompt),
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "seed": seed,
        **({"cache_salt": salt} if salt else {}),
        **running.engine.capabilities.request_options,
    }
    growth: list[int] = []
    last: Mapping[str, Any] = {}
    url = f"{running.server.url}/v1/completions"
    with httpx.stream("POST", url, json=body, timeout=120, trust_env=False) as stream:
        assert stream.status_code == 200, stream.read()
        events = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    for event in events[:-1]:
        chunk = json.loads(event)
        if chunk["choices"]:
            growth.append(chunk["usage"]["completion_tokens"])
        else:
            last = chunk["usage"]
    return Answer(
        prompt_tokens=last["prompt_tokens"],
        completion_tokens=last["completion_tokens"],
        cached_tokens=last["prompt_tokens_details"]["cached_tokens"],
        growth=tuple(growth),
    )


def random_prompt(vocabulary: int, length: int, seed: int) -> list[int]:
    """Return token ids that no other seed shares a prefix with."""
    return random.Random(seed).sample(range(10, vocabulary), length)


class AdapterContract:
    """What an adapter keeps without its engine.

    A subclass adds the fixtures (scope class) `engine`: the adapter; `speculative`: a configuration with a
    drafter; `refused`: a configuration and the name of the rule that forbids it.
    """

    def test_it_says_what_it_was_written_for(self, engine: Engine) -> None:
        assert engine.written_for
        assert len({rule.name for rule in engine.rules}) == len(engine.rules)
        assert all(rule.meaning for rule in engine.rules)

    def test_an_allowed_arm_has_no_refusals(self, engine: Engine, speculative: EngineConfig) -> None:
        assert list(engine.refusals(speculative)) == []
        assert list(engine.refusals(speculative.baseline())) == []

    def test_a_refusal_has_its_rule_and_reason(
        self, engine: Engine, refused: tuple[EngineConfig, str]
    ) -> None:
        config, rule = refused
        reasons = {refusal.rule: refusal.reason for refusal in engine.refusals(config)}
        assert rule in reasons
        assert len(reasons[rule].split()) > 5

    def test_an_unknown_flag_is_named(
        self, engine: Engine, speculative: EngineConfig, tmp_path: Path
    ) -> None:
        config = replace(speculative, flags={**speculative.flags, "warp_speed": 9})
        with pytest.raises(EngineConfigError, match="warp_speed"):
            engine.command(config, Site(port=1, directory=tmp_path))
        assert engine.refusals(config)

    def test_the_environment_is_an_allow_list(
        self, engine: Engine, speculative: EngineConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("RAY_ADDRESS", "RAY_JOB_ID", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "PYTHONSTARTUP"):
            monkeypatch.setenv(name, "leak")
        command = engine.command(speculative, Site(port=1, directory=tmp_path))
        assert "leak" not in command.env.values()
        assert command.cwd == tmp_path

    def test_a_command_depends_on_nothing_but_its_input(
        self, engine: Engine, speculative: EngineConfig, tmp_path: Path
    ) -> None:
        site = Site(port=4711, directory=tmp_path)
        command = engine.command(speculative, site)
        assert command == engine.command(speculative, site)
        assert "4711" in command.argv
        assert "127.0.0.1" in command.argv


class EngineContract(AdapterContract):
    """Behaviour the rest of the program relies on.

    Beside those of `AdapterContract` a subclass adds the fixture `broken`: a configuration whose engine ends
    during start, and the error that has to say so. `speculative` has at least 2048 tokens of context and a
    prefix cache.
    """

    ready_seconds = 30.0
    vocabulary = 4000
    """Token ids below it are valid in the model."""

    @pytest.fixture(scope="class")
    @classmethod
    def start(cls, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Start:
        @contextmanager
        def started(config: EngineConfig) -> Iterator[RunningEngine]:
            with lease_port() as lease:
                site = Site(port=lease.port, directory=tmp_path_factory.mktemp("engine"))
                with start_engine(engine, config, site, ready_seconds=cls.ready_seconds) as running:
                    yield running

        return started

    @pytest.fixture(scope="class")
    @classmethod
    def running(cls, start: Start, speculative: EngineConfig) -> Iterator[RunningEngine]:
        with start(speculative) as running:
            yield running

    @pytest.fixture(scope="class")
    @classmethod
    def dumps(cls, engine: Engine, start: Start, running: RunningEngine) -> tuple[Mapping[str, Any], ...]:
        """The resolved configuration of `running`, of a second start of the same, and of the baseline."""
        dumps = [engine.resolved(running.server)]
        config = running.server.config
        for other in (config, config.baseline()):
            with start(other) as started:
                dumps.append(engine.resolved(started.server))
        return tuple(dumps)

    def test_it_serves_the_model_under_its_name(self, running: RunningEngine) -> None:
        models = httpx.get(f"{running.server.url}/v1/models", trust_env=False).json()["data"]
        config = running.server.config
        assert [(model["id"], model["max_model_len"]) for model in models] == [
            (config.model.name, config.model.max_context)
        ]

    def test_the_version_of_the_environment_is_the_servers(
        self, engine: Engine, running: RunningEngine
    ) -> None:
        served = httpx.get(f"{running.server.url}/version", trust_env=False).json()["version"]
        assert engine.version(running.server.config.python) == served
        assert ("emulated" in served) == engine.capabilities.emulated

    @pytest.mark.parametrize("tokens", [1, 2, 17])
    def test_an_answer_has_exactly_the_pinned_length(self, running: RunningEngine, tokens: int) -> None:
        answer = complete(running, random_prompt(self.vocabulary, 40, tokens), tokens=tokens)
        assert (answer.prompt_tokens, answer.completion_tokens) == (40, tokens)

    def test_usage_grows_with_every_chunk(self, running: RunningEngine) -> None:
        answer = complete(running, random_prompt(self.vocabulary, 40, 100), tokens=24)
        assert list(answer.growth) == sorted(answer.growth)
        assert answer.growth[0] >= 1
        assert answer.growth[-1] == 24

    def test_counters_agree_with_the_client(self, engine: Engine, running: RunningEngine) -> None:
        before = engine.counters(running.server)
        sizes = [(31 + 7 * index, 9 + 3 * index) for index in range(6)]
        with concurrent.futures.ThreadPoolExecutor(len(sizes)) as pool:
            jobs = [
                pool.submit(
                    complete, running, random_prompt(self.vocabulary, length, 200 + length), tokens=tokens
                )
                for length, tokens in sizes
            ]
            answers = [job.result() for job in jobs]
        counted = engine.counters(running.server).since(before)
        cached = sum(answer.cached_tokens for answer in answers)
        assert counted.generation_tokens == sum(answer.completion_tokens for answer in answers)
        assert counted.prompt_tokens == sum(answer.prompt_tokens for answer in answers)
        assert (counted.cached_prompt_tokens, counted.computed_prompt_tokens) == (
            cached,
            counted.prompt_tokens - cached,
        )
        assert counted.first_tokens == len(sizes)
        assert (counted.running, counted.waiting) == (0, 0)

    def test_every_series_that_is_read_is_there(self, engine: Engine, running: RunningEngine) -> None:
        complete(running, random_prompt(self.vocabulary, 40, 250), tokens=8)
        exposed = engine.exposed(running.server)
        missing = [entry for entry in engine.series if entry.name not in exposed]
        assert [entry.name for entry in missing if entry.instead not in exposed] == []

    def test_drafts_are_counted_by_position(self, engine: Engine, running: RunningEngine) -> None:
        before = engine.counters(running.server)
        complete(running, random_prompt(self.vocabulary, 40, 300), tokens=64)
        counted = engine.counters(running.server).since(before)
        k = running.server.config.drafter.k
        self.check_drafts(counted, k)
        decoded = counted.generation_tokens - counted.first_tokens
        assert counted.step_intervals <= decoded <= counted.step_intervals * (k + 1)

    @staticmethod
    def check_drafts(counted: Counters, k: int) -> None:
        assert counted.drafts > 0
        assert counted.drafts <= counted.draft_tokens <= counted.drafts * k
        assert len(counted.accepted_per_position) == k
        assert sum(counted.accepted_per_position) == counted.accepted_tokens <= counted.draft_tokens
        assert list(counted.accepted_per_position) == sorted(counted.accepted_per_position, reverse=True)

    def test_a_prompt_is_cached_until_the_reset(self, engine: Engine, running: RunningEngine) -> None:
        prompt = random_prompt(self.vocabulary, 512, 400)
        first, second = (complete(running, prompt, tokens=2, salt="one") for _ in range(2))
        assert (first.cached_tokens, second.cached_tokens > 0) == (0, True)
        assert engine.reset_cache(running.server)
        assert complete(running, prompt, tokens=2, salt="one").cached_tokens == 0

    def test_salts_share_no_cache(self, running: RunningEngine) -> None:
        prompt = random_prompt(self.vocabulary, 512, 500)
        complete(running, prompt, tokens=2, salt="left")
        assert complete(running, prompt, tokens=2, salt="right").cached_tokens == 0
        assert complete(running, prompt, tokens=2, salt="left").cached_tokens > 0

    def test_capacity_is_known(self, engine: Engine, running: RunningEngine) -> None:
        capacity = engine.capacity(running.server)
        assert capacity.tokens is not None
        assert capacity.tokens >= 2048
        assert capacity.block_size is not None

    def test_another_configuration_than_the_ordered_one_is_noticed(
        self, engine: Engine, dumps: tuple[Mapping[str, Any], ...], speculative: EngineConfig
    ) -> None:
        other = replace(speculative, seed=speculative.seed + 1)
        assert list(engine.contradictions(speculative, dumps[0])) == []
        assert list(engine.contradictions(speculative.baseline(), dumps[2])) == []
        for config, dump in ((speculative, dumps[2]), (speculative.baseline(), dumps[0]), (other, dumps[0])):
            assert engine.contradictions(config, dump)

    def test_two_starts_resolve_alike(self, dumps: tuple[Mapping[str, Any], ...]) -> None:
        first, second, _ = dumps
        assert len(first) > 5
        assert {key for key in {**first, **second} if first.get(key) != second.get(key)} == set()

    def test_a_pair_differs_in_the_drafter_only(
        self, engine: Engine, dumps: tuple[Mapping[str, Any], ...], speculative: EngineConfig
    ) -> None:
        first, _, plain = dumps
        allowed = tuple(engine.drafter_keys(speculative))
        changed = {key for key in {**first, **plain} if first.get(key) != plain.get(key)}
        assert {key for key in changed if key.startswith("speculative_config")}
        assert {key for key in changed if not key.startswith(allowed)} == set()

    def test_a_failed_start_has_its_cause_and_log(
        self, start: Start, broken: tuple[EngineConfig, type[EngineStartError]]
    ) -> None:
        config, expected = broken
        with pytest.raises(EngineStartError) as caught, start(config):
            pass
        assert type(caught.value) is expected, caught.value.log_tail
        assert caught.value.log_tail

    def test_a_stopped_engine_leaves_nothing(self, start: Start, speculative: EngineConfig) -> None:
        with start(speculative.baseline()) as running:
            tree = running.process.tree()
            report = running.stop(20.0)
        assert tree
        assert report.survivors == 0
        assert not any(process.is_running() for process in tree)
