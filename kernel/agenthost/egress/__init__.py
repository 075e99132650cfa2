"""The one HTTP client: policies, guard points, caps, and errors that say what left."""

from .client import Egress
from .policy import EgressPolicy

__all__ = ["Egress", "EgressPolicy"]
