"""The guard point ``audit``: may what is about to be recorded happen?"""

from __future__ import annotations

from agenthost import GuardPoint
from agenthost_values.value_class import value_class


@value_class
class AuditCase:
    """What is about to happen: the event's kind, its subject, and who causes it."""

    kind: str
    subject: str
    by: str


AUDIT = GuardPoint("audit", AuditCase, "what cannot be recorded")
