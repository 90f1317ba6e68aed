"""The report of a sweep: a page that works offline, the same as Markdown, and its figures as files."""

from analysis.report.files import HTML, MARKDOWN, Report, render, write_report

__all__ = ["HTML", "MARKDOWN", "Report", "render", "write_report"]
