"""Submitting without a cluster: ids and attempts, what travels, addresses and tokens, and what is told."""

import shlex
import tomllib
import zipfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from orchestrator import cli
from orchestrator.commands.grid import parse
from orchestrator.errors import ConfigError, SubmitError
from orchestrator.job_server import prepare_authentication, server_address
from orchestrator.planning import make_plan
from orchestrator.results_root import ResultsRoot
from orchestrator.saved import Saved
from orchestrator.submission import Submission, content_of, find, submission_id
from orchestrator.submit import HOME, UPLOAD_LIMIT, entrypoint, for_cluster, pack, stage, submit
from orchestrator.sweep import collect

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def planned():
    return make_plan(collect(["workload=short", "workload.limit=4", "name=sent"]))


class Server:
    """A job server that only keeps what it is given."""

    def __init__(self, *jobs):
        self.jobs = list(jobs)
        self.taken = ()
        self.entrypoints = []

    def submissions(self):
        return list(self.jobs)

    def submit(self, job, *, entrypoint, package, metadata):
        if job in self.taken:
            self.jobs.append(Submission(id=job, state="RUNNING"))
            return False
        with zipfile.ZipFile(package) as archive:
            assert set(archive.namelist()) == {"plan.json", "workload.tokens"}
        self.entrypoints.append(entrypoint)
        content = metadata["specload.content"]
        self.jobs.append(
            Submission(id=job, state="RUNNING", content=content, sweep=metadata["specload.sweep"])
        )
        return True


def test_one_attempt_runs_at_a_time_and_a_stopped_one_is_followed_by_the_next(planned):
    server, root = Server(), ResultsRoot.of("memory://x")

    def again(plan=planned.plan, **options):
        return submit(server, plan, planned.workload, root, **options)

    def ends(state):
        server.jobs[-1] = replace(server.jobs[-1], state=state)

    first = again()
    assert (first.what, first.id) == ("new", f"sweep-{planned.plan.digest[:10]}-1")
    assert again().what == "attached"
    for attempt, state in enumerate(("STOPPED", "FAILED"), start=2):
        ends(state)
        found = again()
        assert (found.what, found.id, found.before.state) == ("new", first.id[:-1] + str(attempt), state)
    ends("SUCCEEDED")
    assert again().what == "finished"
    assert again(replace(planned.plan, overrides=("other words",))).what == "finished"
    assert (
        again(replace(planned.plan, threshold=0.5)).what == "new"
    )  # told otherwise: there may be more to do
    ends("SUCCEEDED")
    assert again(retry=("failed", "invalid")).what == "new"
    assert "--retry failed,invalid" in server.entrypoints[-1]


def test_two_who_submit_in_the_same_moment_share_one_driver(planned):
    server = Server()
    server.taken = (submission_id(planned.plan, 1),)
    done = submit(server, planned.plan, planned.workload, ResultsRoot.of("memory://x"))
    assert (done.what, done.id) == ("attached", server.taken[0])


def test_the_plan_is_the_same_sweep_there_and_its_workload_travels(planned, tmp_path):
    there = for_cluster(planned.plan)
    assert there.cluster.address == "auto"
    assert (there.sweep, there.digest) == (planned.plan.sweep, planned.plan.digest)
    archives = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        archives.append(pack(there, planned.workload, tmp_path / name).read_bytes())
    assert archives[0] == archives[1]
    with zipfile.ZipFile(tmp_path / "a" / "sweep.zip") as archive:
        archive.extractall(tmp_path / "node")
    saved = Saved.at(str(tmp_path / "node" / "plan.json"), results="memory://x", work=None)
    assert saved.plan == there
    assert list(saved.workload.conversations) == list(planned.workload.conversations)


def test_a_workload_that_is_not_the_plans_is_refused(planned, tmp_path):
    with zipfile.ZipFile(pack(for_cluster(planned.plan), planned.workload, tmp_path)) as archive:
        archive.extract("plan.json", tmp_path)
    other = make_plan(collect(["workload=short", "workload.limit=3"]))
    pack(other.plan, other.workload, tmp_path)
    with pytest.raises(ConfigError, match=r"workload\.tokens is not the workload of its plan"):
        Saved.at(str(tmp_path / "plan.json"), results=None, work=None)


def test_a_workload_too_large_for_the_job_server_goes_by_the_results_url(planned, tmp_path, monkeypatch):
    assert UPLOAD_LIMIT < 100 * 2**20
    monkeypatch.setattr("orchestrator.submit.UPLOAD_LIMIT", 10)
    with pytest.raises(SubmitError, match="results to a URL"):
        submit(Server(), planned.plan, planned.workload, ResultsRoot.of("/x"))

    class Bare(Server):
        def submit(self, job, *, entrypoint, package, metadata):
            assert package is None
            self.entrypoints.append(entrypoint)
            return True

    server, url = Bare(), tmp_path.as_uri()
    submit(server, planned.plan, planned.workload, ResultsRoot.of(url))
    words = shlex.split(server.entrypoints[0])
    place = f"{url}/{planned.plan.sweep}/plan.json"
    assert words == ["exec", "specload", "sweep", "--from", place, "--results", url, "--work", HOME]
    saved = Saved.at(place, results=url, work=tmp_path / "node")
    assert saved.plan == for_cluster(planned.plan)
    assert list(saved.workload.conversations) == list(planned.workload.conversations)
    assert saved.root == ResultsRoot(folder=tmp_path / "node", url=url)


def test_a_url_without_a_plan_is_told(tmp_path):
    with pytest.raises(ConfigError, match="give the URL of a sweep's folder"):
        Saved.at(f"{tmp_path.as_uri()}/none", results=None, work=tmp_path)


def test_a_submission_is_found_by_name_digest_or_id():
    jobs = [
        Submission(id="sweep-0123456789-1", state="STOPPED", sweep="study-0123456789"),
        Submission(id="sweep-0123456789-2", state="RUNNING", sweep="study-0123456789"),
        Submission(id="sweep-01ff000000-1", state="RUNNING", sweep="study-01ff000000"),
    ]
    for word in ("study-0123456789", "0123", "sweep-0123456789", "study-012", "sweep-0123456789-2"):
        assert find(jobs, word).id == "sweep-0123456789-2"
    assert find(jobs, "sweep-0123456789-1").state == "STOPPED"
    for word in ("01", "study"):
        with pytest.raises(SubmitError, match="may be any of study-0123456789, study-01ff000000"):
            find(jobs, word)
    for word in ("other", ""):
        with pytest.raises(SubmitError, match="it knows study"):
            find(jobs, word)
    with pytest.raises(SubmitError, match="none was submitted"):
        find([], "x")


def test_what_a_driver_is_told_otherwise_changes_its_content(planned):
    content = content_of(planned.plan, "a")
    assert content == content_of(replace(planned.plan, notes=("x",)), "a")
    assert content != content_of(planned.plan, "b")
    assert content != content_of(replace(planned.plan, threshold=0.5), "a")


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ("http://head:8265/", {}, "http://head:8265"),
        (None, {"RAY_ADDRESS": "https://head"}, "https://head"),
        (None, {"RAY_API_SERVER_ADDRESS": "http://a:1", "RAY_ADDRESS": "http://b:1"}, "http://a:1"),
        ("http://c:1", {"RAY_ADDRESS": "http://b:1"}, "http://c:1"),
    ],
)
def test_the_address_is_the_arguments_or_the_environments(given, environment, expected, monkeypatch):
    use(environment, monkeypatch)
    assert server_address(given) == expected


@pytest.mark.parametrize("address", [None, "auto", "head:6379", "ray://head:10001", "http://", "http://h:x"])
def test_what_is_no_address_of_a_job_server_is_told(address, monkeypatch):
    use({}, monkeypatch)
    with pytest.raises(SubmitError, match="http://HEAD:8265"):
        server_address(address)


def test_a_token_is_used_where_there_is_one_and_missed_where_it_is_wanted(tmp_path, monkeypatch):
    use({"HOME": str(tmp_path)}, monkeypatch)
    assert prepare_authentication() is False
    use({"RAY_AUTH_MODE": "token"}, monkeypatch)
    with pytest.raises(SubmitError, match="there is no token"):
        prepare_authentication()
    use({"RAY_AUTH_TOKEN_PATH": str(tmp_path / "none")}, monkeypatch)
    with pytest.raises(SubmitError, match="missing, unreadable or empty"):
        prepare_authentication()
    (tmp_path / "token").write_text("abc")
    use({"RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}, monkeypatch)
    assert prepare_authentication() is True
    use({"RAY_AUTH_TOKEN": "abc", "RAY_AUTH_MODE": "disabled"}, monkeypatch)
    assert prepare_authentication() is False


def use(environment, monkeypatch):
    for name in ("ADDRESS", "API_SERVER_ADDRESS", "AUTH_MODE", "AUTH_TOKEN", "AUTH_TOKEN_PATH"):
        monkeypatch.delenv(f"RAY_{name}", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def test_nobody_at_the_address_is_one_sentence(capsys, monkeypatch, tmp_path):
    use({"HOME": str(tmp_path)}, monkeypatch)
    assert cli.main(["stop", "x", "--address", "http://127.0.0.1:9"]) == 2
    assert "nobody answers at http://127.0.0.1:9" in capsys.readouterr().err


def test_the_kuberay_job_runs_what_is_staged(planned, tmp_path):
    job = yaml.safe_load((ROOT / "jobs" / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    bucket = "s3://BUCKET/specload"
    expected = entrypoint(f"{bucket}/SWEEP/plan.json", results=bucket, url=True)
    assert spec["entrypoint"] == expected
    exec_, program, command, *words = shlex.split(spec["entrypoint"])
    assert (exec_, program) == ("exec", "specload")
    options, rest = parse(command, "", words)
    assert rest == []
    assert options.results == bucket
    staged = stage(planned.plan, planned.workload, ResultsRoot.of(tmp_path.as_uri()))
    assert staged == expected.replace(bucket, tmp_path.as_uri()).replace("SWEEP", planned.plan.sweep)
    with pytest.raises(SubmitError, match="set results to one"):
        stage(planned.plan, planned.workload, ResultsRoot.of(str(tmp_path)))


def test_the_kuberay_cluster_fits_this_version_and_what_engines_need():
    spec = yaml.safe_load((ROOT / "jobs" / "rayjob.yaml").read_text())["spec"]
    assert spec["submissionMode"] in ("K8sJobMode", "HTTPMode", "SidecarMode")
    assert spec["shutdownAfterJobFinishes"] is True
    assert int(yaml.safe_load(spec["runtimeEnvYAML"])["env_vars"]["RAY_JOB_STOP_WAIT_TIME_S"]) >= 60
    cluster = spec["rayClusterSpec"]
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (needed,) = (entry.partition(">=")[2] for entry in dependencies if entry.startswith("ray["))
    assert Version(cluster["rayVersion"]) >= Version(needed)
    assert cluster["authOptions"]["mode"] == "token"
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    images = {container["image"] for group in groups for container in containers(group)}
    assert {image.rpartition(":")[2] for image in images} == {version("specload")}
    assert cluster["headGroupSpec"]["rayStartParams"]["num-gpus"] == "0"
    for group in cluster["workerGroupSpecs"]:
        for container in containers(group):
            assert int(container["resources"]["limits"]["nvidia.com/gpu"]) >= 1
            assert {"name": "RAY_worker_niceness", "value": "0"} in container["env"]
            assert "/dev/shm" in {mount["mountPath"] for mount in container["volumeMounts"]}
    named = [
        entry["secretRef"]["name"] for group in groups for c in containers(group) for entry in c["envFrom"]
    ]
    assert named, "credentials come from a secret of the cluster, never from this file"


def containers(group):
    return group["template"]["spec"]["containers"]
