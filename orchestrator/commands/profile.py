"""`specload profile`: where a decode step's time goes, for arms beside their baseline."""

from collections.abc import Sequence

from orchestrator.commands.as_json import print_json
from orchestrator.commands.grid import asked, parse, use_rays_authentication
from orchestrator.profile_plan import ProfileWish, plan_profile
from orchestrator.tables import console

SUMMARY = """Start an arm and its baseline, hold C requests in decode, and say where a step's time goes: from
vLLM's own profiler, elsewhere as an estimate from step times. ARM is the label or the digest of an arm
of the plan that the words or --from give; several share a picture and a baseline; none means all. No
throughput is quoted from it."""


def run(arguments: Sequence[str]) -> int:
    """Profile the arms that the words name."""
    options, words = parse("profile", SUMMARY, arguments)
    arms, rest = _arms(words)
    found = asked("profile", options, rest)
    if found is None:
        return 0
    wish = ProfileWish(
        concurrency=options.concurrency,
        context=options.context,
        steps=options.steps,
        repeats=options.repeats,
        estimate=options.estimate,
    )
    profile = plan_profile(found.plan, found.workload, arms, wish)
    use_rays_authentication(found.plan.cluster.address)
    # Late: Ray and matplotlib take seconds to load, and a typo should not wait for them.
    from orchestrator.profile import run_profile  # noqa: PLC0415 - see above
    from orchestrator.profile_files import PICTURES, content, write_profile  # noqa: PLC0415 - see above
    from orchestrator.profile_table import profile_table  # noqa: PLC0415 - see above
    from orchestrator.tracking_profile import attach_profile  # noqa: PLC0415 - see above

    out = console()
    told = console(stderr=True) if options.json else out
    result = run_profile(found.plan, profile, say=told.print)
    folder = profile.folder(found.plan, found.results)
    write_profile(folder, found.plan, profile, result)
    if options.json:
        print_json({**content(found.plan, profile, result), "folder": folder})
    else:
        out.print(profile_table(profile, result))
        out.print(f"picture: {folder / PICTURES[-1]}", soft_wrap=True)
    if found.results.resolve() != folder.resolve().parents[2]:  # the folder of a sweep that MLflow may know
        told.print(attach_profile(found.plan, found.results, folder), soft_wrap=True)
    return 0


def _arms(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that name arms, and those that are Hydra's."""
    bare = [word for word in words if "=" not in word and not word.startswith(("-", "+", "~"))]
    return bare, [word for word in words if word not in bare]
