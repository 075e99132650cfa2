"""Durable work that happens once: submit with a unique key, step, cancel, get, list.

A job survives the process. Whatever was running at a crash runs again with a higher
epoch; steps that had finished give their remembered output instead of running again,
and a step of the older epoch can no longer commit.
"""

from .queue import Handler, Jobs
from .running import RunningJob, Superseded
from .tables import SCHEMA, Job, JobState

__all__ = [
    "SCHEMA",
    "Handler",
    "Job",
    "JobState",
    "Jobs",
    "RunningJob",
    "Superseded",
]
