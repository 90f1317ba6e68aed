"""Table for the terminal: the rules of engines."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engines.base import Engine, Rule
from engines.rules import COMMON_RULES


def rules_table(engines: Sequence[Engine]) -> RenderableType:
    """Return the rules that all engines share, and then those of each engine and the version they are of."""
    common = frozenset(rule.name for rule in COMMON_RULES)
    tables = [_table("every engine", COMMON_RULES)]
    for engine in engines:
        own = [rule for rule in engine.rules if rule.name not in common]
        tables.append(_table(f"engine={engine.name}, written for {engine.written_for}", own))
    return Group(*tables)


def rules_facts(engines: Sequence[Engine]) -> list[dict[str, str]]:
    """Return the same rules for programs: `every engine` first."""
    common = frozenset(rule.name for rule in COMMON_RULES)
    own = ((engine.name, [r for r in engine.rules if r.name not in common]) for engine in engines)
    groups: list[tuple[str, Sequence[Rule]]] = [("every engine", COMMON_RULES), *own]
    return [
        {"engine": name, "rule": rule.name, "asks": rule.meaning, "versions": str(rule.versions or "")}
        for name, rules in groups
        for rule in rules
    ]


def _table(title: str, rules: Sequence[Rule]) -> Table:
    table = Table(title=f"{title}: {len(rules)} rules", title_justify="left")
    table.add_column("rule", no_wrap=True)
    table.add_column("what it asks for")
    for rule in rules:
        versions = f" (versions {rule.versions})" if rule.versions else ""
        table.add_row(Text(rule.name), Text(rule.meaning + versions))
    return table
