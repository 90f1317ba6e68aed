"""Secrets: refused in a configuration by name, form and value; cleaned from text of elsewhere."""

import copy
import json

import pytest

from orchestrator import cli
from orchestrator.errors import ConfigError
from orchestrator.planning import make_plan
from orchestrator.secrecy import check_no_secrets, check_url, redacted, redacted_data
from orchestrator.sweep import collect

MARKER = "hunter2-Zq81-marker"
HUB_TOKEN = "hf_" + "Ab1" * 9


@pytest.fixture(scope="module")
def usual():
    (found,) = collect([])
    return found.config


def changed(config, key, value):
    """The configuration with one more or another value at a dotted key."""
    config = copy.deepcopy(dict(config))
    *parents, last = key.split(".")
    node = config
    for parent in parents:
        node = node[parent]
    node[last] = value
    return config


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("engine.env.HF_TOKEN", MARKER),
        ("engine.env.AWS_SECRET_ACCESS_KEY", MARKER),
        ("engine.env.NOTE", HUB_TOKEN),
        ("engine.flags.api_key", MARKER),
        ("engine.flags.hf_token", MARKER),
        ("engine.flags.deep", {"password": MARKER}),
        ("engine.flags.list", [HUB_TOKEN]),
        ("engine.flags.innocent", f"is {MARKER}"),
        ("drafter.options.secret", MARKER),
        ("tracking.uri", f"postgresql://user:{MARKER}@host/db"),
        ("tracking.uri", f"http://{MARKER}@host:5000"),
        ("results", f"s3://key:{MARKER}@bucket/x"),
        ("results", f"https://host/x?X-Amz-Signature={MARKER}"),
        ("workload.paths", [f"https://user:{MARKER}@host/trace.jsonl"]),
        ("model.path", f"https://host/m?token={MARKER}"),
        ("cluster.address", f"http://u:{MARKER}@host"),
    ],
)
def test_a_secret_anywhere_in_the_configuration_is_refused_without_repeating_it(
    usual, key, value, monkeypatch
):
    monkeypatch.setenv("MY_API_KEY", MARKER)
    with pytest.raises(ConfigError, match=key) as refused:
        check_no_secrets(changed(usual, key, value))
    assert MARKER not in str(refused.value)
    assert HUB_TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("engine.env.TOKENIZERS_PARALLELISM", "false"),
        ("engine.flags.max_num_batched_tokens", 2048),
        ("engine.flags.long_prefill_token_threshold", "64"),
        ("engine.flags.tokenizer_mode", "auto"),
        ("results", "s3://bucket/folder"),
        ("tracking.uri", "https://mlflow.example:5000"),
        ("tracking.uri", "postgresql://user@host/db"),
    ],
)
def test_what_only_resembles_a_secret_is_allowed(usual, key, value):
    check_no_secrets(changed(usual, key, value))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"GET https://user:{MARKER}@host/path", "host/path"),
        (f"https://host/x?a=1&sig={MARKER}&b=2", "&b=2"),
        (f"Authorization: Bearer {MARKER}", "Authorization"),
        (f"engine.env.HF_TOKEN={MARKER} is not a key", "is not a key"),
        (f"{{'api_key': '{MARKER}', 'port': 80}}", "'port': 80"),
        (f"vllm serve --api-key {MARKER} --port 80", "--port 80"),
        (f"loading with {HUB_TOKEN} done", "done"),
        (f"-----BEGIN PRIVATE KEY-----\n{MARKER}\n-----END PRIVATE KEY-----\nnext", "next"),
        (f"the value {MARKER} of a variable", "of a variable"),
    ],
)
def test_text_from_elsewhere_is_cleaned_and_stays_readable(text, kept, monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_TOKEN", MARKER)
    found = redacted(text)
    assert MARKER not in found
    assert HUB_TOKEN not in found
    assert kept in found
    assert redacted(found) == found


def test_text_without_secrets_is_left_alone():
    text = "max_tokens=128 prompt_tokens: 4096 tokenizer: fast; see http://127.0.0.1:8265/#/jobs?page=2"
    assert redacted(text) == text
    assert redacted_data({"argv": ["--max-tokens", "8"], "n": [1, None, True]}) == {
        "argv": ["--max-tokens", "8"],
        "n": [1, None, True],
    }
    assert redacted_data({"env": {"API_KEY": MARKER}})["env"]["API_KEY"] != MARKER


def test_a_damaged_url_is_no_secret():
    check_url("results", "s3://[bucket")


@pytest.mark.parametrize(
    "words",
    [
        ["plan", f"engine.env.HF_TOKEN={MARKER}"],  # Hydra's own error names the word
        ["plan", f"+engine.env.HF_TOKEN={MARKER}"],
        ["status", "x", "--address", f"http://user:{MARKER}@127.0.0.1:1"],
        ["fetch", f"s3://key:{MARKER}@bucket/sweep"],
        ["sweep", "--from", f"s3://key:{MARKER}@bucket/sweep/plan.json"],
    ],
)
def test_no_message_of_the_command_line_repeats_a_secret(words, capsys):
    assert cli.main(words) == 2
    said = capsys.readouterr()
    assert MARKER not in said.out + said.err


def test_a_plan_has_no_trace_of_a_secret_environment(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", MARKER)
    planned = make_plan(collect(["workload=short", "workload.limit=4"]))
    assert MARKER not in json.dumps(planned.plan.to_dict())
