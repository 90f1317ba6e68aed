"""Errors of the jobs room.

* JobError
  x WorkloadError(ValueError)   a file is missing, empty, truncated, of the wrong form, or fits nothing
    x ChatRefusedError          the target's chat template refuses a conversation
    x MissingRepliesError       turns have no reply to pin lengths to; they have to be recorded first
  x ReplayError                 the load process ended without a usable result
    x LoadProcessKilledError    a signal ended it, for instance the kernel's when memory ran out
  x SilentReplicaError          a replica that has requests has sent nothing for the stated time
  x GpusHeldError               what a stopped engine held has not come back
  x RecordError                 an engine did not complete a conversation that was to be recorded
  x ProfileError(ValueError)    an engine cannot be held in decode as asked, or its trace shows no step
"""

from jobs.nouns import counted


class JobError(Exception):
    """Base of all errors of this room; pickles across Ray."""

    cause = "job"


class WorkloadError(JobError, ValueError):
    """The user can fix the workload; the message names file, line and what to do."""

    cause = "workload"


class ChatRefusedError(WorkloadError):
    """The target's chat template refuses the messages of a conversation, for instance a role."""


class MissingRepliesError(WorkloadError):
    """A replay needs recorded replies; the command line adds the command that records them."""

    @classmethod
    def of(cls, name: str, missing: int, turns: int) -> "MissingRepliesError":
        """Return the error for workload `name`, of whose `turns` so many are `missing` a reply."""
        message = (
            f"workload {name!r} has no reply for {missing} of its {counted(turns, 'turn')}; a replay sends "
            "recorded history and pins each request to the length of its recorded reply, so have a "
            "baseline engine write them once with `specload workload record`"
        )
        return cls(message)


class ReplayError(JobError):
    """The load process failed; the message has its last lines."""

    cause = "replay"


class LoadProcessKilledError(ReplayError):
    """A signal ended a load process: the engine is not to blame, and trying again can help."""

    cause = "load_process"


class SilentReplicaError(JobError):
    """A replica owes tokens and has sent nothing for the stated time; the caller knows the engine."""

    cause = "hung"


class GpusHeldError(JobError):
    """A stopped engine's memory or processes are still there: its devices are unusable."""

    cause = "gpus_held"


class RecordError(JobError):
    """A request of a recording failed; the message names conversation and turn."""

    cause = "record"


class ProfileError(JobError, ValueError):
    """A profile cannot be taken as asked: too many requests, too long a context, or a trace without steps."""

    cause = "profile"
