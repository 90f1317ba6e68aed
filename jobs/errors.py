"""Errors of the jobs room.

* JobError
  x WorkloadError(ValueError)   a file is missing, empty, truncated, of the wrong form, or fits nothing
  x ReplayError                 the load process ended without a usable result
"""


class JobError(Exception):
    """Base of all errors of this room; pickles across Ray."""

    cause = "job"


class WorkloadError(JobError, ValueError):
    """The user can fix the workload; the message names file, line and what to do."""

    cause = "workload"


class ReplayError(JobError):
    """The load process failed; the message has its last lines."""

    cause = "replay"
