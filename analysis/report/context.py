"""What a report shows, in every form of it: plain values, nothing formatted and nothing escaped yet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.axis import AXES, Axis
from analysis.banners import banners
from analysis.caveats import ranked_caveats
from analysis.decision import Decision, decision
from analysis.figures import FIGURES, Figure
from analysis.frame import Sweep, arm_labels
from analysis.objectives import OBJECTIVES, Objective
from analysis.recommendation import recommend
from analysis.report.engines import Difference, command_lines, differences
from analysis.report.provenance import gate_counts, identity_facts, provenance, refused_arms
from analysis.report.section import gathered
from analysis.report.summary_tables import summary_sections
from analysis.section import Section
from analysis.sections import SECTIONS
from analysis.summary import Summary
from analysis.undecided import retry_words
from jobs.metric_names import METRICS
from jobs.result import MEASURED, CellResult, Gate

CELL_METRICS = (
    "throughput/total_tok_s",
    "throughput/computed_tok_s",
    "throughput/output_tok_s",
    "user/speed_tok_s",
    "latency/ttft_p95_ms",
    "latency/e2el_p95_ms",
    "spec/mal",
    "spec/tokens_per_step",
    "step/mean_ms",
    "cache/hit_rate",
    "kv/capacity_tokens",
    "kv/usage_peak",
    "engine/preemptions",
    "window/occupancy",
)
"""Shown in the table of all cells."""
STRONGEST = 3
"""Caveats that stand beside the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """The figures of one question, with the tables that say the same in figures."""

    number: int
    """From 1, in the order of the report."""
    name: str
    """Key in `analysis.figures.FIGURES`."""
    heading: str
    figures: tuple[Figure, ...]
    """Absent ones, which say why, included."""
    tables: tuple[Section, ...]
    """Those that its figures name and that no earlier chapter has."""
    elsewhere: tuple[Section, ...] = ()
    """Those that an earlier chapter has."""

    @property
    def boxes(self) -> tuple[Section, ...]:
        """Its tables as they are shown; what is missing for one reason, a figure's included, is said once."""
        told = [figure.missing for figure in self.figures if figure.plot is None]
        return gathered(self.tables, told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything a report shows."""

    sweep: Sweep
    summary: Summary
    title: str
    banners: tuple[tuple[str, str], ...]
    """(word, what it means) of what has to be unmistakable."""
    decision: Decision
    caveats: tuple[str, ...]
    """Strongest first; the first `STRONGEST` stand beside the decision."""
    chapters: tuple[Chapter, ...]
    sections: tuple[Section, ...]
    """All tables: of the summary, then of `SECTIONS`."""
    troubles: tuple[tuple[str, CellResult], ...]
    """(label, cell) of every cell without a measurement that counts."""
    failed_gates: tuple[tuple[str, CellResult, Gate], ...]
    gates: tuple[tuple[str, int, int, int], ...]
    """Name, passed, failed and not checked."""
    refused: tuple[tuple[str, str, str], ...]
    """Name, rule and reason of arms that no engine was started for."""
    differences: tuple[tuple[str, list[Difference]], ...]
    """Per arm: what its engine resolved differently from its baseline's."""
    command_lines: tuple[tuple[str, str], ...]
    """(label, command) of the first engine of each arm."""
    cells: tuple[tuple[str, CellResult], ...]
    """(label, cell) of all, in the order of a table."""
    facts: tuple[tuple[str, tuple[Any, ...]], ...]
    """Distinct values of the identity's facts."""
    provenance: tuple[tuple[str, Any], ...]

    @property
    def directory(self) -> Path:
        """The sweep's folder."""
        return self.sweep.directory

    @property
    def plan(self) -> Mapping[str, Any]:
        """Content of the plan."""
        return self.sweep.plan

    @property
    def objective(self) -> Objective:
        """What the verdicts are on."""
        return OBJECTIVES[self.summary.objective]

    @property
    def axis(self) -> Axis:
        """What the load levels are a number of."""
        return AXES[self.summary.axis]

    @property
    def drawn(self) -> tuple[Figure, ...]:
        """All figures in the order of the report."""
        return tuple(figure for chapter in self.chapters for figure in chapter.figures)

    @property
    def rest(self) -> tuple[Section, ...]:
        """Sections that no figure names."""
        named = {section.name for chapter in self.chapters for section in chapter.tables}
        return gathered(section for section in self.sections if section.name not in named)

    @property
    def blocks(self) -> int:
        """Blocks that count."""
        return len({cell.block for cell in self.sweep.results if cell.counts})

    @property
    def arms(self) -> int:
        """Arms with a drafter."""
        return len({row.arm for row in self.summary.rows})

    @property
    def retry(self) -> str:
        """The command that measures failed and invalid cells again; empty where there are none."""
        return retry_words(self.sweep)

    @property
    def cell_metrics(self) -> tuple[str, ...]:
        """Metrics of the table of all cells."""
        return CELL_METRICS

    @property
    def metrics(self) -> Mapping[str, str]:
        """Definition of every metric."""
        return METRICS


def build_context(sweep: Sweep, summary: Summary) -> Page:
    """Return what the report of a sweep shows.

    Args:
        sweep: the sweep, all its cells whatever their outcome.
        summary: `summarise` of its results.
    """
    cells = sweep.results
    labels = arm_labels(cells)
    found = recommend(sweep, objective=summary.objective) if cells else None
    made = [sweep.once(make) for make in SECTIONS.values()] if cells else []
    sections = (*summary_sections(summary), *made) if cells else ()
    return Page(
        sweep=sweep,
        summary=summary,
        title=str(sweep.plan.get("sweep") or sweep.plan.get("name") or sweep.directory.name),
        banners=tuple(banners(summary)),
        decision=decision(sweep, summary, found),
        caveats=summary.caveats if found is None else ranked_caveats(sweep, summary, found),
        chapters=tuple(_chapters(sweep, summary, sections)) if cells else (),
        sections=sections,
        troubles=tuple((labels[cell.arm], cell) for cell in cells if cell.outcome != MEASURED),
        failed_gates=tuple(
            (labels[cell.arm], cell, gate) for cell in cells for gate in cell.gates if gate.failed
        ),
        gates=gate_counts(cells),
        refused=refused_arms(sweep.plan),
        differences=tuple(differences(sweep.directory, cells, labels)),
        command_lines=tuple(command_lines(sweep.directory, cells, labels)),
        cells=tuple((labels[cell.arm], cell) for cell in sorted(cells, key=_cell_order)),
        facts=identity_facts(cells),
        provenance=provenance(sweep.directory),
    )


def _chapters(sweep: Sweep, summary: Summary, sections: Sequence[Section]) -> Iterator[Chapter]:
    known = {section.name: section for section in sections}
    shown: set[str] = set()
    for number, (name, draw) in enumerate(FIGURES.items(), start=1):
        figures = draw(sweep, summary)
        named = [
            key for key in dict.fromkeys(key for figure in figures for key in figure.sections) if key in known
        ]
        yield Chapter(
            number=number,
            name=name,
            heading=name.replace("_", " ").capitalize(),
            figures=figures,
            tables=tuple(known[key] for key in named if key not in shown),
            elsewhere=tuple(known[key] for key in named if key in shown and not known[key].frame.empty),
        )
        shown.update(named)


def _cell_order(cell: CellResult) -> tuple[Any, ...]:
    return (
        cell.block,
        cell.segment,
        cell.layout,
        cell.drafter,
        cell.k,
        cell.arm_label,
        cell.level,
        cell.role,
    )
