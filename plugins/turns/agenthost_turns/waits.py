"""Turns that wait for turns: a ring of them would wait for ever."""

from __future__ import annotations

from collections.abc import Iterator

from agenthost import Conflict, Work

from .mailbox import Mailboxes


def ring(mailboxes: Mailboxes, caller: Work, session_id: str) -> list[str]:
    """Find what would wait for itself if a turn called into a session.

    A turn in a queue waits for all before it, a turn that asked another agent for the
    turn it asked. The call is one more of these waits; when they lead back to the
    caller, nobody in the ring would ever go on.

    Returns:
        The agents of the ring in the order in which they wait, the caller's first and
        last; empty when the call may be made.
    """
    seen: set[int] = set()
    path: list[str] = []

    def leads_back(work: Work) -> bool:
        if work is caller:
            return True
        if id(work) in seen:
            return False
        seen.add(id(work))
        path.append(work.agent.name)
        if any(leads_back(each) for each in _waited_for(mailboxes, work)):
            return True
        path.pop()
        return False

    for work in mailboxes.ahead(session_id):
        if leads_back(work):
            own = caller.agent.name
            return [own, *path, own]
    return []


def check_no_ring(
    mailboxes: Mailboxes, caller: Work, session_id: str, name: str
) -> None:
    """See that a call into a session of a named agent does not wait for itself.

    Raises:
        Conflict: It would.
    """
    if names := ring(mailboxes, caller, session_id):
        raise Conflict(
            f"agent {name!r} waits for this call ({' -> '.join(names)}); it cannot "
            "call itself"
        )


def _waited_for(mailboxes: Mailboxes, work: Work) -> Iterator[Work]:
    if work.runs:
        yield from work.asked
    else:
        yield from mailboxes.ahead(work.agent.session_id, work)
