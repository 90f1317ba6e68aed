"""From words to a plan, with the real rules, tokenizer and workload; and what is refused on the way."""

import itertools
import json

import pytest

from jobs.errors import WorkloadError
from jobs.workload.bind import digest_of
from orchestrator.binding import rebind
from orchestrator.errors import ConfigError
from orchestrator.models import folder_digest, resolve_model
from orchestrator.plan import Plan
from orchestrator.planning import make_plan
from orchestrator.saved import read_plan
from orchestrator.sweep import collect
from tests.orchestrator.points import with_values


@pytest.fixture
def chat(tmp_path):
    """Six conversations of two turns."""
    path = tmp_path / "chat.jsonl"
    lines = []
    for index in range(6):
        messages = [
            {"role": "user", "content": f"How do I restart service number {index} after an upgrade?"},
            {
                "role": "assistant",
                "content": f"Run the restart script of service {index}, then read its log.",
            },
            {"role": "user", "content": "And how do I know that it worked?"},
            {
                "role": "assistant",
                "content": "The health page answers, and the log has no error in its last lines.",
            },
        ]
        lines.append(json.dumps({"id": f"c{index}", "messages": messages}))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def composed():
    """Return the point of a study on the emulator with one EAGLE-3 drafter, as Hydra composes it."""
    (point,) = collect(["drafter=eagle3", "workload=chat_jsonl", "workload.name=chat", "name=study"])
    return point


@pytest.fixture
def plan_of(composed, chat):
    """Plan the composed point with other values, one mapping of dotted keys a point."""

    def plan_values(*points):
        paths = {"workload.paths": [str(chat)]}
        return make_plan([with_values(composed, {**paths, **values}) for values in points or ({},)])

    return plan_values


def test_a_whole_plan(chat):
    planned = make_plan(
        collect(
            [
                *("workload=chat_jsonl", "workload.name=chat", f"workload.paths=['{chat}']", "name=study"),
                *("-m", "drafter=none,eagle3", "drafter.k=3,7", "load.concurrency=4,1", "design.blocks=2"),
            ]
        )
    )
    plan = planned.plan
    assert [arm.label for arm in plan.arms] == ["tp1/none", "tp1/eagle3-k3", "tp1/eagle3-k7"]
    assert [[level.concurrency for level in arm.levels] for arm in plan.arms] == [[1, 4]] * 3
    assert [len(block.runs) for block in plan.blocks] == [4, 4]
    assert plan.workload.digest == digest_of(planned.workload)
    assert (plan.workload.conversations, plan.workload.turns) == (6, 12)
    assert plan.cluster.resource == "engine_slot"
    assert plan.arms[0].config.version.startswith("emulated")
    assert "drafter.k=3,7" in plan.overrides
    assert plan.sweep == f"study-{plan.digest[:10]}"


def test_the_same_words_give_the_same_plan(plan_of):
    assert plan_of().plan.digest == plan_of().plan.digest
    assert plan_of().plan.digest != plan_of({"seed": 1}).plan.digest


def test_a_saved_plan_alone_is_the_sweep(plan_of, tmp_path):
    planned = plan_of(*({"drafter.k": k, "drafter.acceptance.alpha": 0.7} for k in (3, 7)))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(planned.plan.to_dict()))
    again = read_plan(path)
    assert again == planned.plan
    assert rebind(again) == planned.workload


def test_a_plan_whose_workload_changed(plan_of, chat):
    plan = plan_of().plan
    chat.write_text(chat.read_text().replace("restart", "stop"))
    with pytest.raises(ConfigError, match="its files or the model's tokenizer changed"):
        rebind(plan)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("{", "cannot be used"),
        ("[]", "is no plan"),
        ('{"schema": 99}', "schema 99; this version reads 1"),
        ('{"schema": 1}', "is no plan of this version"),
    ],
)
def test_plans_that_are_none(tmp_path, content, message):
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_plan(path)


def test_a_plan_changed_by_hand(plan_of, tmp_path):
    data = plan_of().plan.to_dict()
    data["seed"] = 5
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match="changed by hand"):
        read_plan(path)
    assert isinstance(Plan.from_dict({key: value for key, value in data.items() if key != "digest"}), Plan)


def test_epochs_are_said(plan_of):
    notes = plan_of({"load.concurrency": [1, 16]}).plan.notes
    assert any(
        "the workload has 6" in note and "C=16: 11 times" in note and "C=1:" not in note for note in notes
    )


def test_exclude_is_said_and_cut(plan_of):
    exclude = [{"drafter.method": "mtp", "drafter.k": 7}]
    grid = itertools.product(("eagle3", "mtp"), (3, 7))
    plan = plan_of(*({"drafter.method": m, "drafter.k": k, "exclude": exclude} for m, k in grid)).plan
    assert [arm.label for arm in plan.arms] == ["tp1/none", "tp1/eagle3-k3", "tp1/eagle3-k7", "tp1/mtp-k3"]
    assert "exclude drafter.method=mtp, drafter.k=7 leaves out 1 point" in plan.notes


def test_a_saved_plan_cannot_leave_the_results_folder(plan_of):
    data = {**plan_of().plan.to_dict(), "name": "../evil"}
    with pytest.raises(ValueError, match="becomes a folder"):
        Plan.from_dict({key: value for key, value in data.items() if key != "digest"})


def test_a_primed_cache_is_refused_where_no_request_can_prove_it(plan_of):
    plan = plan_of(*({"layout.tp": tp, "layout.dp": 2 // tp, "cache.state": "primed"} for tp in (2, 1))).plan
    assert {arm.config.layout.label for arm in plan.arms} == {"tp2"}
    assert {(entry.arm.config.layout.label, entry.rule) for entry in plan.refused} == {("dp2", "primed_dp")}


def test_the_cache_state_is_part_of_the_sweep_and_of_its_saved_plan(plan_of):
    cold = plan_of().plan
    primed = plan_of({"cache.state": "primed", "cache.prime": 256}).plan
    assert (cold.cache.state, primed.cache.state, primed.cache.prime) == ("cold", "primed", 256)
    assert cold.digest != primed.digest
    assert Plan.from_dict(json.loads(json.dumps(primed.to_dict()))) == primed
    assert plan_of({"design.warmup_rounds_max": 1}).plan.digest != cold.digest


def test_budget_and_confirmation_are_no_part_of_the_sweep_s_identity(plan_of):
    """So that a sweep that ran can be given more, or confirmed, by the same words."""
    plain = plan_of().plan
    more = plan_of({"design.budget": 2.5, "design.confirm": 2}).plan
    assert (plain.budget, plain.confirm, more.budget, more.confirm) == (None, 0, 2.5, 2)
    assert more.digest == plain.digest
    assert Plan.from_dict(json.loads(json.dumps(more.to_dict()))) == more


def test_layouts_that_do_not_divide_each_other_can_run_in_blocks_of_their_own(plan_of):
    plan = plan_of(*({"layout.dp": dp, "design.share": "layout", "design.blocks": 1} for dp in (2, 3))).plan
    assert plan.refused == ()
    assert [block.devices for block in plan.blocks] == [3, 2]
    assert any("layouts of 2 and 3 devices have blocks of their own" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("seed", (0, 1)),
        ("name", ("a", "b")),
        ("design.blocks", (1, 2)),
        ("workload.limit", (2, 4)),
        ("cache.state", ("cold", "primed")),
    ],
)
def test_what_cannot_be_an_axis(plan_of, key, values):
    with pytest.raises(ConfigError, match=key.partition(".")[0]):
        plan_of(*({key: value} for value in values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"engine.flags.nope": 1}, "nope"),
        ({"engine.flags.gpu": "nope"}, "nope"),
        ({"model.name": "nope"}, "nope"),
        ({"drafter.method": "nope"}, "nope"),
        ({"drafter.k": -1}, "drafter.k"),
        ({"layout.tp": 0}, "layout.tp"),
        ({"drafter.acceptance.alpha": 1.5}, "acceptance.alpha"),
        ({"load.concurrency": 0}, "load.concurrency"),
        ({"design.blocks": 0}, "design.blocks"),
        ({"design.warmup_rounds_max": 0}, "design.warmup_rounds_max"),
        ({"design.share": "some"}, "design.share is 'some'; choose one of all, layout"),
        ({"design.budget": 0}, "design.budget is 0; it counts GPU-hours"),
        ({"design.confirm": 1}, "design.confirm is 1; it counts fresh blocks"),
        ({"cache.state": "tepid"}, "cache.state"),
        ({"name": "../evil"}, "name is '../evil'; it becomes a folder"),
        ({"name": "a/b"}, "name is 'a/b'"),
        ({"name": ".hidden"}, "name is '.hidden'"),
        ({"name": ""}, "name is ''"),
        ({"cache.state": "primed", "cache.prime": "most"}, "cache.prime"),
        ({"cache.state": "primed", "cache.prime": 0}, "cache.prime"),
        ({"cache.expect": "less"}, "cache.expect"),
        ({"cache.reset_seconds": -1}, "cache.reset_seconds"),
        ({"engine.device": "abacus"}, "engine.device"),
        ({"engine.name": "nope"}, "engine.name"),
        ({"layout.tp": 4, "cluster.slots": 2}, "needs 4 devices and this machine offers 2"),
        ({"engine.env.HF_TOKEN": "hunter2"}, "engine.env.HF_TOKEN looks like a secret"),
        ({"tracking.uri": "postgresql://u:hunter2@h/db"}, "tracking.uri holds a password"),
    ],
)
def test_bad_values_name_their_key(plan_of, values, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")) as caught:
        plan_of(values)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_harmless_names_are_no_secrets(plan_of):
    assert plan_of({"engine.env.MAX_TOKENS": "1"}).plan.arms[0].config.env == {"MAX_TOKENS": "1"}


def test_a_missing_workload_file(plan_of, chat):
    chat.unlink()
    with pytest.raises(WorkloadError, match=r"chat\.jsonl"):
        plan_of()


def test_conversations_longer_than_the_context(plan_of):
    with pytest.raises(WorkloadError, match="8"):
        plan_of({"model.max_context": 8})


def test_a_model_folder_without_a_config(tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        resolve_model("m", str(tmp_path / "absent"), 100)
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        resolve_model("m", str(folder), 100)
    (folder / "config.json").write_text("{}")
    model = resolve_model("m", str(folder), 100)
    assert model.path == str(folder)
    assert model.digest == folder_digest(folder)


def test_folder_digests_tell_weights_apart(tmp_path):
    for name, weights in (("a", b"1" * 2000), ("b", b"1" * 2000), ("c", b"1" * 1999 + b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "model.safetensors").write_bytes(weights)
    first, same, other = (folder_digest(tmp_path / name) for name in "abc")
    assert first == same != other
    (tmp_path / "a" / ".cache").write_text("a download's leftovers")
    assert folder_digest(tmp_path / "a") == first


def test_big_files_count_with_their_edges(tmp_path):
    path = tmp_path / "model.safetensors"
    with path.open("wb") as stream:
        stream.truncate(20 * 2**20)  # sparse
    before = folder_digest(tmp_path)
    with path.open("r+b") as stream:
        stream.seek(-1, 2)
        stream.write(b"1")
    assert folder_digest(tmp_path) != before


@pytest.mark.parametrize(
    ("experiment", "treatments"),
    [("quickstart", 3), ("crossover", 2), ("k_sweep", 5), ("layout_by_drafter", 4)],
)
def test_the_emulated_experiments_can_be_planned(experiment, treatments):
    plan = make_plan(collect([f"+experiment={experiment}"])).plan
    assert sum(not arm.is_baseline for arm in plan.arms) == treatments
    assert plan.refused == ()
    assert {run.role for block in plan.blocks for run in block.runs} == {"opening", "treatment", "closing"}


def test_the_experiments_on_real_engines_compose():
    assert len(collect(["+experiment=quickstart_vllm"])) == 4
    corner = ["layout=tp2", "drafter=tiny_agree60", "drafter.k=2"]
    assert len(collect(["+experiment=real_vllm_grid", *corner])) == 1
