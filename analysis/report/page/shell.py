"""What every page is made with: templates, style, scripts, and a policy that lets nothing else run."""

import base64
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

import jinja2
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from analysis.axis import number
from analysis.figures import Figure
from analysis.report.format import FILTERS
from analysis.report.page.plots import plot_of
from analysis.report.page.tables import FEW_ROWS, LONG_ROWS, OPEN_ROWS, table_of
from analysis.report.section import heading
from analysis.untrusted import for_html
from jobs.nouns import counted

PACKAGE = "analysis.report.page"
_CODE = re.compile(r"`([^`]+)`")


def render_page(
    template: str,
    *,
    figures: Iterable[Figure],
    marks: Mapping[str, tuple[str, ...]],
    prints_all: str = "",
    package: str = PACKAGE,
    **values: object,
) -> str:
    """Return a page: a template that extends `shell.html`.

    Args:
        template: its file.
        figures: all that it includes as `figure.html`.
        marks: of each arm by label, for tables without columns of their own for that.
        prints_all: command that prints the rows that a long table leaves out.
        package: where the template is; the shell and its parts are found in any case.
        values: what the template names beside.
    """
    own = files(PACKAGE)
    plots = {figure.name: plot_of(figure.plot) for figure in figures if figure.plot is not None}
    scripts = [get_plotlyjs()] if plots else []
    scripts.append((own / "report.js").read_text(encoding="utf-8"))
    return (
        _templates(package)
        .get_template(template)
        .render(
            style=Markup((own / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own file and plotly's bundle
            hashes=[_hash(script) for script in scripts],
            plots=plots,
            as_markup=Markup,
            table_of=lambda section: table_of(section, marks),
            long=LONG_ROWS,
            few_open=FEW_ROWS,
            most_open=OPEN_ROWS,
            open=False,
            prints_all=prints_all,
            level=number,
            **values,
        )
    )


@functools.cache
def _templates(package: str) -> jinja2.Environment:
    """Return the templates of a package and those of every page: compiled once."""
    folders = [files(name) for name in dict.fromkeys((package, PACKAGE))]

    def load(name: str) -> str | None:
        found = (folder / name for folder in folders)
        return next((file.read_text(encoding="utf-8") for file in found if file.is_file()), None)

    environment = jinja2.Environment(
        autoescape=True,
        finalize=for_html,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(load),
    )
    environment.filters.update(FILTERS, heading=heading, with_code=_with_code, counted=counted)
    return environment


def _with_code(text: str) -> Markup:
    """Return a sentence whose `words in backquotes` are code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(for_html(text)))))  # noqa: S704 - escaped before


def _hash(script: str) -> Markup:
    """Return what the page's policy knows a script by: no other script runs, wherever it came from."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Markup(f"'sha256-{digest}'")  # noqa: S704 - letters and digits
