"""A trail made without a daemon, and eight ways in which somebody may touch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from agenthost_security.merkle_audit_trail import heads as signed
from agenthost_security.merkle_audit_trail.canonical import FIRST, Entry, entries_after
from agenthost_security.merkle_audit_trail.checking import (
    Broken,
    Walk,
    check_heads,
    check_mark,
)
from agenthost_security.merkle_audit_trail.signing import SigningKey
from agenthost_security.merkle_audit_trail.tree import Tree, leaf_hash

COLUMNS = 11


@dataclass(frozen=True)
class Kept:
    """What is on disk: the rows, the heads, and what the database says of these."""

    rows: list[Entry]
    heads: list[dict[str, Any]]
    public: str

    def break_at(self, rows: Sequence[Entry] | None = None) -> int | None:
        """Verify; give the id of the entry that is told to be wrong."""
        try:
            listed = check_heads(self.heads, self.public)
            mark = (len(self.heads), signed.digest_of(self.heads[-1]))
            check_mark(listed, mark)
            walk = Walk(listed)
            walk.feed(self.rows if rows is None else rows)
            walk.end()
        except Broken as broken:
            return broken.break_at
        return None


def facts_of(number: int, note: str = "") -> tuple[str, str, str, str, str]:
    moment = f"2026-01-01T00:00:{number % 60:02}.000Z"
    details = f'{{"number":{number},"note":"{note}"}}'
    return moment, "tool_ended", f"agent{number % 7}", "operator:ada", details


def follow(rows: list[Entry], count: int, note: str = "") -> list[Entry]:
    """Put so many entries behind others."""
    rows = list(rows)
    for _ in range(count):
        last = (rows[-1][0], rows[-1][2], rows[-1][9]) if rows else (0, 0, FIRST)
        rows += entries_after(last, "main", [facts_of(last[0] + 1, note)])
    return rows


def kept(count: int, every: int = 16) -> Kept:
    """Make a trail of so many entries, with a head after each few."""
    key, tree = SigningKey(bytes(32)), Tree()
    rows = follow([], count)
    heads: list[dict[str, Any]] = []
    for row in rows:
        tree.push(leaf_hash(row[10]))
        if tree.size % every and tree.size != count:
            continue
        facts = {
            "number": len(heads) + 1,
            "node": "main",
            "at": row[3],
            "before": signed.digest_of(heads[-1] if heads else None),
            "size": tree.size,
            "root": tree.root.hex(),
            "last_id": row[0],
            "last_hash": row[9],
        }
        heads.append(signed.made(key, facts))
    return Kept(rows, heads, key.public)


def edit(rows: list[Entry], random: Random) -> tuple[list[Entry], int | None]:
    """Change one stored column of one entry."""
    place, column = random.randrange(len(rows)), random.randrange(COLUMNS)
    row: list[Any] = list(rows[place])
    value = row[column]
    if isinstance(value, int):
        row[column] = value + random.choice((-1, 1, 1000))
    elif isinstance(value, bytes):
        at = random.randrange(len(value))
        row[column] = value[:at] + bytes((value[at] ^ 1,)) + value[at + 1 :]
    else:
        at = random.randrange(len(value))
        row[column] = value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
    changed: Any = tuple(row)
    # An id that was changed is missing where it stood; rows are read in its order.
    return sorted([*rows[:place], changed, *rows[place + 1 :]]), (
        None if column == 0 else rows[place][0]
    )


def edit_with_a_new_hash(
    rows: list[Entry], random: Random
) -> tuple[list[Entry], int | None]:
    """Change an entry and hash it anew; the next one follows another, then."""
    place = random.randrange(len(rows) - 1)
    row = rows[place]
    before = (row[0] - 1, row[2] - 1, row[8])
    (other,) = entries_after(before, "main", [facts_of(row[0], "forged")])
    return [*rows[:place], other, *rows[place + 1 :]], row[0]


def shift(rows: list[Entry], random: Random) -> tuple[list[Entry], int | None]:
    """Move letters from one column into its neighbour."""
    place, column = random.randrange(len(rows)), random.randrange(3, 7)
    row = list(rows[place])
    left, right = str(row[column]), str(row[column + 1])
    count = random.randrange(1, len(left))
    row[column], row[column + 1] = left[:-count], left[-count:] + right
    changed: Any = tuple(row)
    return [*rows[:place], changed, *rows[place + 1 :]], row[0]  # type: ignore[return-value]  # reason: the id


def delete_middle(rows: list[Entry], random: Random) -> tuple[list[Entry], int | None]:
    place = random.randrange(len(rows) - 1)
    count = random.randrange(1, len(rows) - place)
    return [*rows[:place], *rows[place + count :]], rows[place][0]


def delete_tail(rows: list[Entry], random: Random) -> tuple[list[Entry], int | None]:
    left = random.randrange(len(rows))
    return rows[:left], left + 1


def reorder(rows: list[Entry], random: Random) -> tuple[list[Entry], int | None]:
    """Exchange what two entries say, under the ids that they have."""
    one, other = sorted(random.sample(range(len(rows)), 2))
    moved = list(rows)
    first, second = rows[one], rows[other]
    moved[one] = (first[0], *second[1:])
    moved[other] = (second[0], *first[1:])
    return moved, first[0]


def insert(rows: list[Entry], random: Random) -> tuple[list[Entry], int | None]:
    """Put an entry in between, and move those behind it."""
    place = random.randrange(1, len(rows))
    forged = follow(rows[:place], 1, "forged")
    behind = [(row[0] + 1, *row[1:]) for row in rows[place:]]
    moved: Any = [*forged, *behind]
    return moved, None


def rewrite(rows: list[Entry], random: Random) -> tuple[list[Entry], int | None]:
    """Write everything anew from some entry on, each well hashed."""
    place = random.randrange(len(rows))
    return follow(rows[:place], len(rows) - place, "forged"), None


def roll_back(rows: list[Entry], random: Random) -> tuple[list[Entry], int | None]:
    """Put back an older copy, and let other things happen after it."""
    place = random.randrange(len(rows))
    return follow(rows[:place], random.randrange(len(rows)), "since"), None


Way = Callable[[list[Entry], Random], tuple[list[Entry], int | None]]
WAYS: Mapping[str, Way] = {
    "edit": edit,
    "edit with a new hash": edit_with_a_new_hash,
    "field-boundary shift": shift,
    "delete middle": delete_middle,
    "delete tail": delete_tail,
    "reorder": reorder,
    "insert": insert,
    "rewrite of a suffix": rewrite,
    "roll-back": roll_back,
}


def tried(way: Way, trail: Kept, random: Random) -> tuple[bool, bool]:
    """Try one way once: was it found, and where it was done (or that is not told)?"""
    rows, place = way(trail.rows, random)
    if rows == trail.rows:
        return True, True
    found = trail.break_at(rows)
    return found is not None, place is None or found == place
