"""A Prometheus page, parsed: values by the exact name of their series, with the labels of each rank.

`_created` series and label values that hold the name of another metric never count: only names are compared.
"""

from prometheus_client.parser import text_string_to_metric_families

from engines.errors import EngineError
from engines.series import Series


class Page:
    """One parsed metrics page."""

    def __init__(self, text: str) -> None:
        try:
            families = list(text_string_to_metric_families(_without_buckets(text)))
        except ValueError as error:
            message = f"the metrics page cannot be parsed: {error}"
            raise EngineError(message) from error
        self._samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in families:
            for sample in family.samples:
                self._samples.setdefault(sample.name, []).append((sample.labels, sample.value))

    @property
    def names(self) -> frozenset[str]:
        """Names of all series on the page."""
        return frozenset(self._samples)

    def has(self, series: Series) -> bool:
        """Whether the page has `series`."""
        return series.name in self._samples

    def values(self, series: Series) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each of the ranks' values of `series`; empty when absent."""
        return self._samples.get(series.name, [])

    def total(self, series: Series, **labels: str) -> float:
        """Return the sum over all values of `series` that carry `labels`; 0 when there is none."""
        wanted = labels.items()
        return sum(value for found, value in self.values(series) if wanted <= found.items())

    def required(self, series: Series) -> float:
        """Return `total(series)`.

        Raises:
            EngineError: the page has no such series.
        """
        if not self.has(series):
            message = f"the metrics page has no {series.name}; this engine or its version is not supported"
            raise EngineError(message)
        return self.total(series)


def _without_buckets(text: str) -> str:
    """Drop the buckets of histograms: most lines of a page, costly to parse, and nothing reads them."""
    return "\n".join(line for line in text.split("\n") if not line.partition("{")[0].endswith("_bucket"))
