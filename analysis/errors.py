"""What analysis refuses."""


class ResultsError(ValueError):
    """A results folder that cannot be read; the message names the files and what to do."""
