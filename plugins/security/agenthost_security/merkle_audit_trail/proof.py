"""What shows at every start that tampering is found, without a database or a key."""

from __future__ import annotations

from agenthost import PluginError

from .canonical import FIRST, Entry, Facts, entries_after
from .checking import Broken, Walk
from .tree import Tree, inclusion, leaf_hash, ranges, root_from

_FACTS: Facts = ("2026-01-01T00:00:00.000Z", "probe", "agent", "operator:me", "{}")


def prove() -> None:
    """See a good chain pass, and one refused in each way in which it may be wrong.

    Raises:
        PluginError: Something was not found.
    """
    chain = entries_after((0, 0, FIRST), "probe", [_FACTS] * 5)
    if _broken(chain) is not None:
        raise PluginError("a good chain was refused")
    edited = (*chain[2][:6], "operator:you", *chain[2][7:])
    for place, other in ((2, edited), (1, chain[3])):
        if _broken([*chain[:place], other, *chain[place + 1 :]]) != place + 1:
            raise PluginError("an entry that was changed was not found")
    if _broken([*chain[:2], *chain[3:]]) != 3:
        raise PluginError("an entry that is missing was not found")
    leaves = [leaf_hash(entry[10]) for entry in chain]
    path = inclusion(2, 5, ranges((), leaves.__getitem__))
    root = Tree((), leaves).root
    if root_from(leaves[2], 2, 5, path) != root:
        raise PluginError("a leaf was not found in its tree")
    if root_from(leaves[1], 2, 5, path) == root:
        raise PluginError("another leaf was taken for one of the tree")


def _broken(chain: list[Entry]) -> int | None:
    walk = Walk()
    try:
        walk.feed(chain)
        walk.end()
    except Broken as broken:
        return broken.break_at
    return None
