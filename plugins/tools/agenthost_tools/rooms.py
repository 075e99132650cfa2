"""What was told in private does not come up where several hear the answer.

Whoever brings a message labels its turn: ``private`` where one person alone hears the
answer, ``room`` where several do, and ``public`` besides where anybody may. What is
remembered, and what was said, keeps the labels of its turn. A result from which
something was kept back says so: whoever brings the answer can tell those who hear it.
"""

from __future__ import annotations

from collections.abc import Collection

from agenthost import Context, Json

PRIVATE, ROOM, PUBLIC = "private", "room", "public"
WITHHELD = {"withheld": True}
"""What a result has as ``structured`` where something was kept back."""
LEFT_OUT = "\n(what was said elsewhere is left out: several people hear this)"


def in_room(context: Context) -> bool:
    """Tell whether several people hear the answer.

    Who is answered in private may have read what was said in a room.
    """
    return ROOM in context.labels and PRIVATE not in context.labels


def is_private(context: Context, labels: Collection[str]) -> bool:
    """Tell whether a value was told in private, and several would hear it."""
    return PRIVATE in labels and in_room(context)


def is_said_elsewhere(context: Context, found: Json) -> bool:
    """Tell whether words are of another conversation, and several would hear them."""
    if context.agent is None or not in_room(context):
        return False
    own: bool = found["session_id"] == context.agent.session_id
    return not own and PUBLIC not in found["labels"]
