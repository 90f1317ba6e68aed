"""Errors a user meets, and their exit codes.

* SpecloadError                     exit 1
  x ConfigError(ValueError)         exit 2: a key, group, grid or file the user can fix
  x RayUnavailableError             exit 2: no cluster at the address, or a local Ray that does not start
  x PlacementError                  exit 2: more devices or CPUs than any node has
  x LedgerError                     exit 2: the results folder is foreign, locked or damaged
    - LockedError                   another driver runs the sweep, or may
    - LockLostError                 another driver took the sweep over: this one stops
    - ResultsWriteError             the disk is full, or results can no longer be written
  x TrackingError                   exit 2: the MLflow store cannot be used (newer schema, no store)
    - TrackingUnreachableError      its server does not answer now
  x SubmitError                     exit 2: a cluster's job server cannot be used, or has no such sweep
  x FetchError                      exit 1: results could not be brought back whole
  x RecordingError                  exit 1: a recording stopped; what it has stays, and it can go on
  x ProfileFailedError              exit 1: an engine that was to be profiled, or its process, failed
  x SweepFailedError                exit 1: the sweep ran and no cell was measured

The rooms below have trees of their own, drawn at the top of `engines/errors.py` and `jobs/errors.py`. In each
tree what the user can fix is also a ValueError: the command line shows its message as one paragraph and exits
with 2.
"""


class SpecloadError(Exception):
    """Base of the orchestrator's errors."""

    exit_code = 1


class ConfigError(SpecloadError, ValueError):
    """A key, group, grid or file that the user can fix."""

    exit_code = 2


class RayUnavailableError(SpecloadError, ValueError):
    """No Ray cluster answers at the address, or a local one could not be started."""

    exit_code = 2


class PlacementError(SpecloadError, ValueError):
    """The cluster can never hold a block of this plan."""

    exit_code = 2


class LedgerError(SpecloadError, ValueError):
    """The results folder is foreign, locked by a living driver, or damaged."""

    exit_code = 2


class LockedError(LedgerError):
    """Another driver runs the sweep, or may: the message says who, where and since when."""


class LockLostError(LedgerError):
    """Another driver took the sweep over while this one was silent; this one stops."""


class ResultsWriteError(LedgerError):
    """The disk is full, or the results can no longer be written; what is recorded stays."""


class TrackingError(SpecloadError, ValueError):
    """The MLflow store cannot be used."""

    exit_code = 2


class TrackingUnreachableError(TrackingError):
    """The MLflow server does not answer now; it may later."""


class SubmitError(SpecloadError, ValueError):
    """A cluster's job server is away, refuses the token, or does not know the sweep."""

    exit_code = 2


class FetchError(SpecloadError):
    """Results could not be brought back whole; what was brought stays."""


class RecordingError(SpecloadError):
    """The recording of replies cannot start or stopped; the message says whether it can go on."""


class ProfileFailedError(SpecloadError):
    """An engine that was to be profiled failed, or the process that profiled it was lost."""


class SweepFailedError(SpecloadError):
    """The sweep ran to its end and measured nothing."""
