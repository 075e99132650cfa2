"""The one HTTP client: policies, guard points, caps, and errors that say what left."""

from .client import Egress
from .policy import CHECK_HOST, FINAL_URL, EgressPolicy

__all__ = ["CHECK_HOST", "FINAL_URL", "Egress", "EgressPolicy"]
