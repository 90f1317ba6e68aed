"""From files of another tool to a summary."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from analysis.objectives import DEFAULT
from analysis.others.arms import BASELINE, OtherArm, arms_of, parse_arm, recorded_arm
from analysis.others.frame import others_frame
from analysis.others.judgement import unpaired_summary
from analysis.others.reading import read_runs
from analysis.others.run import OtherResultsError, OtherRun
from analysis.others.server_log import read_log, with_log
from analysis.summary import Summary


def compare(
    paths: Iterable[str | Path] = (),
    *,
    baseline: Iterable[str | Path] = (),
    arms: Iterable[str] = (),
    logs: Iterable[str] = (),
    objective: str = DEFAULT,
    threshold: float = 0.02,
    trust_repeats: bool = False,
) -> Summary:
    """Judge results of other tools.

    Args:
        paths: files, folders or patterns whose runs tell themselves what served them.
        baseline: the same of runs without a drafter.
        arms: `LABEL=FILES` each, LABEL as `parse_arm` reads it.
        logs: `LABEL=FILE` each, the log of the vLLM server of an arm.
        objective: what the verdicts are on.
        threshold: practical threshold as a share.
        trust_repeats: take runs of one server start for replicates.

    Raises:
        OtherResultsError: files that cannot be read, named or compared.
    """
    runs: list[OtherRun] = []
    notes: list[str] = []
    told: dict[str, OtherArm] = {}
    seen: set[str] = set()
    groups: list[tuple[OtherArm | None, list[str | Path]]] = [(None, list(paths))]
    groups.append((OtherArm(drafter=BASELINE), list(baseline)))
    groups += [_told("--arm", text) for text in arms]
    for arm, given in groups:
        reading = read_runs(given)
        notes += reading.notes
        for run in reading.runs:
            if run.source in seen:
                message = f"{run.source} is given twice: a run is of one arm"
                raise OtherResultsError(message)
            seen.add(run.source)
            runs.append(run)
            if arm is not None:
                told[run.source] = arm
    if not runs:
        raise OtherResultsError(_nothing(notes))
    for text in logs:
        arm, (path,) = _told("--log", text)
        runs = _logged(runs, told, arm, Path(path))
    frame, words = others_frame(arms_of(runs, told))
    return unpaired_summary(
        frame, [*notes, *words], threshold=threshold, objective=objective, trust_repeats=trust_repeats
    )


def _logged(
    runs: Sequence[OtherRun], told: Mapping[str, OtherArm], arm: OtherArm, path: Path
) -> list[OtherRun]:
    """Return the runs, those of an arm with what its server's log tells."""
    log = read_log(path)
    changed = [
        with_log(run, log) if (told.get(run.source) or recorded_arm(run)) == arm else run for run in runs
    ]
    if changed == list(runs):
        message = f"--log {arm.label}={path}: no run is of an arm with this label; write it as in --arm"
        raise OtherResultsError(message)
    return changed


def _told(option: str, text: str) -> tuple[OtherArm, list[str | Path]]:
    label, sign, files = text.partition("=")
    if not sign or not files:
        message = f"{option} {text}: write LABEL=FILES, as in eagle3-k5=runs/*.json"
        raise OtherResultsError(message)
    return parse_arm(label), [files]


def _nothing(notes: Sequence[str]) -> str:
    if notes:
        return f"no run is left to judge: {'; '.join(notes)}"
    return "give the files of a comparison: specload judge --baseline FILES --arm LABEL=FILES"
