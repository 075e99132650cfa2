"""The walk over all chains: every column, every link, every signed head."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from math import inf
from typing import Any, NoReturn

from .canonical import FIRST, Entry, canonical
from .heads import Head, digest_of, is_signed
from .tree import Frontier

SIGNATURES = 10_000
"""Of the newest heads so many signatures are checked: each holds for all before it."""


class Broken(Exception):
    """The trail is not as it was written.

    Args:
        break_at: The id of the entry that is wrong, or is missing.
        reason: What is wrong, for people.
    """

    def __init__(self, break_at: int, reason: str) -> None:
        super().__init__(reason)
        self.break_at = break_at
        self.reason = reason


class Chain:
    """One node's chain as far as it was walked.

    Args:
        number: How many entries there were before.
        id_: The id of the last of them.
        hash_: Its hash.

    Attributes:
        agreed: The id of the last entry that a head vouches for.
        suspect: The id of an entry that the next one does not follow; 0 when none is.
        forged: Whether a head says otherwise of the last entry.
        tree: The tree over it, where the whole chain is walked.
        due: The number of the entry that the next head is compared with.
    """

    def __init__(self, number: int = 0, id_: int = 0, hash_: str = FIRST) -> None:
        self.number = number
        self.id = id_
        self.hash = hash_
        self._digest = bytes.fromhex(hash_)
        self.agreed = 0
        self.suspect = 0
        self.forged = False
        self.tree = Frontier()
        self.due: float = inf

    def take(self, entry: Entry) -> None:
        """Check the next entry by itself, and that it follows.

        Raises:
            Broken: It, or an entry before it, is not what was written.
        """
        id_, node, number, at, kind, agent, actor, details, before, hash_, raw = entry
        facts = (at, kind, agent, actor, details)
        linked = before == self.hash
        try:
            prev = self._digest if linked else bytes.fromhex(before)
            whole = canonical(id_, node, number, facts, prev) == raw
            digest = sha256(raw)
        except Exception:  # noqa: BLE001 - whatever stands there is no entry
            whole, digest = False, sha256()
        if self.suspect or self.forged:
            self._blame(linked=linked and whole)
        if not whole or number != self.number + 1:
            raise Broken(id_, f"entry {id_} was changed")
        if digest.hexdigest() != hash_:
            raise Broken(id_, f"the hash of entry {id_} is wrong")
        if not linked:
            self.suspect = self.id or id_
        self.number, self.id, self.hash = number, id_, hash_
        self._digest = digest.digest()

    def agree(self, head: Head) -> None:
        """Compare the last entry with the head that was signed over it.

        Raises:
            Broken: An earlier one was changed.
        """
        same = self.hash == head["last_hash"] and self.id == head["last_id"]
        if self.suspect:
            # What the head vouches for was not changed: so it was the one before.
            raise Broken(self.suspect if same else self.id, "entries were changed")
        self.forged = not same
        if same:
            self.agreed = self.id

    def end(self) -> None:
        """Say that nothing follows.

        Raises:
            Broken: The last entries are not what was written.
        """
        if self.suspect:
            raise Broken(self.suspect, f"entry {self.id} does not follow it")
        if self.forged:
            self._blame(linked=True)

    def _blame(self, *, linked: bool) -> NoReturn:
        """Say which entry was changed, now that it is known what follows."""
        if self.suspect:
            # The next entry vouches for the one that it follows.
            at = self.suspect if linked else self.id
            raise Broken(at, f"entry {at} was changed")
        told = f"entries {self.agreed + 1} to {self.id} are not those that were signed"
        raise Broken(self.agreed + 1 if linked else self.id, told)


class Walk:
    """Checks entries in the order of their ids; feed it all of them, then end it.

    Args:
        heads: The signed heads, which :func:`check_heads` has checked.
        after: The id before the first entry; behind 0 it is the whole trail, and the
            trees are compared, too.

    Attributes:
        seen: How many there were.
        first_at: The time of the first.
        last_at: The time of the last.
    """

    def __init__(self, heads: Iterable[Head] = (), after: int = 0) -> None:
        self.seen = 0
        self.first_at: str | None = None
        self.last_at: str | None = None
        self._last = after
        self._whole = not after
        self._chains: dict[str, Chain] = {}
        self._heads: dict[str, list[Head]] = {}
        for head in heads:
            self._heads.setdefault(head["node"], []).append(head)
        for waiting in self._heads.values():
            waiting.reverse()

    def feed(self, rows: Iterable[Any]) -> None:
        """Check more entries.

        Raises:
            Broken: One is wrong.
        """
        row = None
        before = self._last
        for row in rows:
            self._check(row)
        if row is not None:
            self.seen += self._last - before
            self.last_at = row[3]

    def end(self) -> None:
        """Say that there are no more entries.

        Raises:
            Broken: The last ones are wrong, or a head tells of more.
        """
        for chain in self._chains.values():
            chain.end()
        for waiting in self._heads.values():
            if waiting:
                missing = self._last + 1
                told = f"a signed head tells of entry {waiting[-1]['last_id']}"
                raise Broken(missing, f"entry {missing} is missing: {told}")

    def _check(self, entry: Entry) -> None:
        id_, node = entry[0], entry[1]
        if id_ != self._last + 1:
            self._missing()
        chain = self._chains.get(node)
        if chain is None:
            chain = self._chains[node] = self._begun(entry)
        chain.take(entry)
        self._last = id_
        if self._whole:
            chain.tree.push(sha256(b"\x00" + entry[10]).digest())
        if chain.number >= chain.due:
            self._compare(chain, self._heads[node].pop())
            chain.due = self._due(node)

    def _begun(self, entry: Entry) -> Chain:
        self.first_at = self.first_at or entry[3]
        chain = Chain() if self._whole else Chain(entry[2] - 1, 0, entry[8])
        chain.due = self._due(entry[1])
        return chain

    def _due(self, node: str) -> float:
        heads = self._heads.get(node)
        return heads[-1]["size"] if heads else inf

    def _missing(self) -> NoReturn:
        for chain in self._chains.values():
            chain.end()
        missing = self._last + 1
        raise Broken(missing, f"entry {missing} is missing")

    def _compare(self, chain: Chain, head: Head) -> None:
        known = chain.agreed
        chain.agree(head)
        if self._whole and not chain.forged and chain.tree.root.hex() != head["root"]:
            told = "the tree is not the one that was signed"
            raise Broken(known + 1, told)


def check_heads(heads: Iterable[Head], public: str) -> list[Head]:
    """Check what heads say of each other, and that they were signed with a key.

    Raises:
        Broken: One is wrong.
    """
    listed = list(heads)
    sizes: dict[str, int] = {}
    before: Head | None = None
    for number, head in enumerate(listed, 1):
        grows = head["size"] > sizes.get(head["node"], 0)
        follows = head["before"] == digest_of(before)
        if head["number"] != number or not grows or not follows:
            told = f"line {number} of audit.heads does not follow the one before"
            raise Broken(before["last_id"] + 1 if before else 1, told)
        sizes[head["node"]] = head["size"]
        before = head
    for head in listed[-SIGNATURES:]:
        if not is_signed(head, public):
            number = head["number"]
            told = f"line {number} of audit.heads was not signed with this key"
            raise Broken(head["last_id"], told)
    return listed


def check_mark(heads: Sequence[Head], mark: tuple[int, str] | None) -> None:
    """Compare the file of heads with what the database says of it.

    Raises:
        Broken: The file has been cut, or exchanged.
    """
    if mark is None:
        return
    count, digest = mark
    if not 0 < count <= len(heads) or digest_of(heads[count - 1]) != digest:
        last = heads[-1]["last_id"] if heads else 0
        told = "audit.heads lacks heads that were signed, or has others"
        raise Broken(last + 1, told)
