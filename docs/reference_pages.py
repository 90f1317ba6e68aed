"""Pages of the reference that are made from the code while MkDocs builds: they cannot fall behind it.

MkDocs loads this file as a hook (`mkdocs.yml`). Each page is a function that returns Markdown.
"""

import ast
import contextlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from omegaconf import DictConfig, OmegaConf

from analysis.objectives import OBJECTIVES
from analysis.sections import SECTIONS
from jobs.metric_names import METRICS
from orchestrator.cli import COMMANDS, main, usage
from orchestrator.schema import register

ROOT = Path(__file__).resolve().parents[1]
TYPES = {"str": "text", "int": "integer", "float": "number", "bool": "true or false", "Any": "any"}
"""Python's words for a type -> a user's."""
GROUPS = {
    "throughput": "Throughput in the steady window",
    "fixed_work": "The whole fixed work",
    "window": "Steady window",
    "user": "User speed",
    "request": "Speed of single requests",
    "session": "Sessions",
    "latency": "Latencies",
    "slo": "Service-level objective",
    "spec": "Speculation",
    "step": "Steps",
    "cache": "Prefix cache",
    "kv": "KV cache",
    "engine": "Scheduler",
    "tokens": "Tokens, counted twice",
    "requests": "Requests",
    "client": "Load process",
    "energy": "Energy",
    "gpu": "GPUs",
    "host": "Host",
    "warmup": "Warm-up",
    "turn": "By turn",
    "context": "By context",
}
"""First part of a metric's name -> heading."""

CONFIG_INTRO = """# Configuration keys

Every key is given as `key=value`, in [Hydra's grammar]; with `-m` also several, `key=a,b`. A group stands for
one of its options, `layout=tp2`, and any key in it can be changed besides. *Default* is what `specload plan`
takes where nothing else is said.

[Hydra's grammar]: https://hydra.cc/docs/1.3/advanced/override_grammar/basic/
"""
METRICS_INTRO = """# Metrics

Every figure of a cell, under the name that `result.json`, MLflow, `cells_frame` and the report share. One
whose source an engine lacks is absent, never zero. [How a cell is measured](../measuring.md) explains the
words.

By draft position i from 1 there are also `spec/acceptance_pos_<i>` (unconditional) and
`spec/conditional_pos_<i>` (of the drafts whose earlier positions were accepted).

## Objectives

What a speculative arm is compared by with its baseline: `design.objective` names one for the verdicts; the
ratios of all are kept as `ratio/<objective>`.
"""
EXIT_CODES = """
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | it ran and measured nothing, or failed; `acceptance`: an arm differs from what was expected |
| 2 | something you can fix: the message says what |
| 130, 143 | interrupted by Ctrl-C or SIGTERM; the same command goes on |

An error is one paragraph on standard error. `--debug`, or `SPECLOAD_DEBUG=1`, shows where it comes from.
"""
SECTIONS_INTRO = """# Parts of the analysis

`specload analyse results/SWEEP NAME...` prints them, `--explain` with the definition and unit of every
column, `--json` for programs; in Python it is `SECTIONS[NAME](sweep).frame`
([analysis in Python](../python.md)).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of the configuration."""

    name: str
    """Dotted, as it is typed."""
    type: str
    """In a user's words."""
    meaning: str


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the site (called by MkDocs)."""
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    return files


def config_page() -> str:
    """Return the page of every key, with what it is where nothing else is said, and each group's options."""
    register()
    with initialize_config_module("conf", version_base="1.3"):
        standard = compose("config")
    keys = list(config_keys())
    groups = dict.fromkeys(key.name.partition(".")[0] for key in keys if "." in key.name)
    lines = [
        CONFIG_INTRO,
        "## Top level",
        "",
        *_table([key for key in keys if "." not in key.name], standard),
    ]
    for group in groups:
        own = [key for key in keys if key.name.startswith(f"{group}.")]
        lines += ["", f"## {group}", "", _group_help(group), "", *_table(own, standard)]
        if (ROOT / "conf" / group).is_dir():
            lines += ["", *_options(group)]
    experiments = sorted((ROOT / "conf" / "experiment").glob("*.yaml"))
    rows = [f"| `+experiment={path.stem}` | {_cell(_comment(path))} |" for path in experiments]
    lines += [
        "",
        "## Experiments",
        "",
        "Whole studies that come along.",
        "",
        *_header("words", "what"),
        *rows,
    ]
    return "\n".join([*lines, ""])


def config_keys() -> Iterator[Key]:
    """Yield every key of the schema, in its order, each with its docstring."""
    tree = ast.parse((ROOT / "orchestrator" / "schema.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    yield from _keys_of("SpecloadSchema", "", classes)


def _keys_of(name: str, prefix: str, classes: dict[str, ast.ClassDef]) -> Iterator[Key]:
    node = classes[name]
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _keys_of(base.id, prefix, classes)
    for field, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        path, kind = f"{prefix}{field.target.id}", ast.unparse(field.annotation)
        if kind in classes:
            yield from _keys_of(kind, f"{path}.", classes)
        else:
            yield Key(name=path, type=_type(kind), meaning=_docstring(after))


def _docstring(node: ast.stmt | None) -> str:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return node.value.value
    return ""


def _type(kind: str) -> str:
    plain = kind.removesuffix(" | None")
    if plain.startswith("list["):
        words = f"list of {_type(plain[5:-1])}"
    elif plain.startswith("dict["):
        words = "map"
    else:
        words = TYPES.get(plain, plain)
    return words if plain == kind else f"{words}, or null"


def _table(keys: list[Key], standard: DictConfig) -> list[str]:
    rows = [
        f"| `{key.name}` | {key.type} | {_default(key.name, standard)} | {_cell(key.meaning)} |"
        for key in keys
    ]
    return [*_header("key", "type", "default", "meaning"), *rows]


def _default(name: str, standard: DictConfig) -> str:
    value: Any = OmegaConf.select(standard, name)
    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value)
        if isinstance(value, dict) and all(entry is None for entry in value.values()):
            value = {}
    if value is None or value in ({}, []):
        return {"None": "null", "{}": "none", "[]": "none"}[str(value)]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _group_help(group: str) -> str:
    tree = ast.parse((ROOT / "orchestrator" / "schema.py").read_text(encoding="utf-8"))
    kinds = {
        field.target.id: ast.unparse(field.annotation)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "SpecloadSchema"
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kinds[group])
    text = (ast.get_docstring(found) or "").removeprefix(f"Group `{group}`: ")
    return text[:1].upper() + text[1:]


def _options(group: str) -> list[str]:
    rows = [
        f"| `{group}={path.stem}` | {_cell(_comment(path))} |"
        for path in sorted((ROOT / "conf" / group).glob("*.yaml"))
    ]
    return [*_header("option", "what"), *rows]


def _comment(path: Path) -> str:
    """Return the words at the top of a YAML file; its values where it has none."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    said = [line.lstrip("# ") for line in lines[:start] if "@package" not in line]
    return " ".join(said) or f"`{', '.join(lines)}`"


def metrics_page() -> str:
    """Return the page of every metric and every objective."""
    lines = [
        METRICS_INTRO,
        *_header("objective", "metric", "better"),
        *(
            f"| `{name}` | `{found.metric}` | {'higher' if found.higher_is_better else 'lower'} |"
            for name, found in OBJECTIVES.items()
        ),
    ]
    for group in dict.fromkeys(name.partition("/")[0] for name in METRICS):
        own = [name for name in METRICS if name.startswith(f"{group}/")]
        rows = [f"| `{name}` | {_cell(METRICS[name])} |" for name in own]
        lines += ["", f"## {GROUPS[group]}", "", *_header("metric", "unit and definition"), *rows]
    return "\n".join([*lines, ""])


def commands_page() -> str:
    """Return the page of every command: what `--help` says, and the exit codes."""
    lines = ["# Commands and exit codes", "", "```text", usage(), "```"]
    for command in COMMANDS:
        words = f"{command.help[:1].upper()}{command.help[1:]}."
        lines += ["", f"## specload {command.name}", "", words, "", "```text", _help(command.name), "```"]
    return "\n".join([*lines, EXIT_CODES])


def _help(name: str) -> str:
    """Return what `specload NAME --help` prints, at a width that fits a page."""
    before, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "92"
    try:
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
            main([name, "--help"])
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
    return said.getvalue().strip()


def sections_page() -> str:
    """Return the page of every part of the analysis."""
    rows = [
        f"| `{name}` | {_cell((make.__doc__ or '').partition('Args:')[0].strip())} |"
        for name, make in SECTIONS.items()
    ]
    return "\n".join([SECTIONS_INTRO, *_header("name", "what it does"), *rows, ""])


def _header(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]


def _cell(text: str) -> str:
    """Return text on one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {
    "reference/config.md": config_page,
    "reference/metrics.md": metrics_page,
    "reference/commands.md": commands_page,
    "reference/sections.md": sections_page,
}
"""Path of a generated page -> what makes it."""
