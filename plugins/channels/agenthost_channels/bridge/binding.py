"""Which agents answer in a place."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from .settings import Binding, ChannelSection

Conversation = tuple[str, str, str]
"""Account, peer and thread."""


def bound(section: ChannelSection, place: Conversation) -> tuple[str, ...]:
    """Name the agents that answer in a place, the first of them before all others."""
    fitting = [each for each in section.bindings if _fits(each, place)]
    if not fitting:
        return (section.agent,)
    best = max(fitting, key=_weight)
    return (best.agent, *best.also)


def choosable(section: ChannelSection, place: Conversation) -> Sequence[str]:
    """Name the agents that people may choose in a place."""
    return tuple(dict.fromkeys((*bound(section, place), *section.agents)))


def _fits(binding: Binding, place: Conversation) -> bool:
    patterns = (binding.account, binding.peer, binding.thread)
    return all(map(fits, patterns, place))


def fits(pattern: str, name: str) -> bool:
    """Tell whether a name is one of a pattern's; nothing but ``*`` is special in it."""
    # Rooms have "[" in their names.
    return fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))


def _weight(binding: Binding) -> tuple[int, ...]:
    """Weigh how much a binding says: thread before peer before account."""
    patterns = (binding.thread, binding.peer, binding.account)
    exact = tuple(int("*" not in each) for each in patterns)
    return (*exact, *(len(each.replace("*", "")) for each in patterns))
