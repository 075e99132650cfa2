"""What stood in the way of a call that was not made."""

from __future__ import annotations

from agenthost import Blocked, Denied, Refused


class Unapproved(Blocked):
    """People did not let the call begin, or nobody could be asked."""


def denial(error: BaseException) -> str:
    """Tell by what a call was denied, "" where it failed otherwise."""
    match error:
        case Refused():
            return "right"
        case Unapproved():
            return "approval"
        case Denied():
            return "guard"
    return ""
