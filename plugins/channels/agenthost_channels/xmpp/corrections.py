"""Messages that replace others (XEP-0308): which one of ours, and which of a person's.

A person's program names what it replaces by its own name for it; we know that by the
id that an archive gave it. Only who has said something can replace it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from ..contract import Inbound, Outbound, Place
from .mapping import Said

MOST = 500


def is_passing(message: Outbound) -> bool:
    """Tell whether another change follows, which an archive should keep instead.

    The change that ends an answer has a name of its own; those before it have that of
    the message that they change.
    """
    return bool(message.edit_of) and message.edit_of == message.key


class Replaceable:
    """The last messages of people, by what their senders call them."""

    def __init__(self) -> None:
        # "" is what replaces another: that one is named, however often it changes.
        self._ids: OrderedDict[tuple[Place, str, str], str] = OrderedDict()

    def settled(self, message: Inbound, said: Said) -> Inbound | None:
        """Give a message the id of what it replaces.

        None where that is not known, and of a change that came before: the stream and
        the archive may both have it.
        """
        who = (message.place, message.sender.id)
        if said.replaces is None:
            self._note((*who, said.id), message.message_id)
            return message
        known = self._ids.get((*who, said.replaces), "")
        if not known or (*who, said.id) in self._ids:
            return None
        self._note((*who, said.id), "")
        return replace(message, message_id=known, edited=True)

    def _note(self, called: tuple[Place, str, str], id_: str) -> None:
        if called[2]:
            self._ids[called] = id_
        if len(self._ids) > MOST:
            self._ids.popitem(last=False)
