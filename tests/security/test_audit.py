"""Figures of the audit trail, each printed as target beside result."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from agenthost import MessageReceived
from agenthost_security.merkle_audit_trail import heads as signed
from agenthost_security.merkle_audit_trail import tables
from agenthost_security.merkle_audit_trail.canonical import Entry
from agenthost_security.merkle_audit_trail.kept import facts_of
from agenthost_security.merkle_audit_trail.offline import check_folder
from agenthost_security.merkle_audit_trail.signing import SigningKey
from agenthost_security.merkle_audit_trail.trail import Trail
from agenthost_security.merkle_audit_trail.tree import Tree, leaf_hash
from agenthost_storage.sqlite.connect import connect

from ..plugins.security.merkle_audit_trail.tampering import WAYS, follow, kept, tried

pytestmark = pytest.mark.security

TIMES = 1_000
MANY = 1_000_000
APPENDS = 20_000
VERIFY_RATIO = 5.0
OF_A_MESSAGE = 3
"""So many entries a message leaves, which are written together."""
APPEND_MICROSECONDS = 20.0
ROUNDS = 3
NOTE = "x" * 240
"""With it an entry is as long as that of a message."""


@pytest.mark.parametrize("way", WAYS)
def test_tampering_is_found(way: str, figures: Callable[[str], None]) -> None:
    random, trail = Random(way), kept(60)
    outcomes = [tried(WAYS[way], trail, random) for _ in range(TIMES)]
    found = sum(each for each, _ in outcomes)
    placed = sum(each for _, each in outcomes)
    figures(f"{way}: target {TIMES} found, result {found}, {placed} with their place")
    assert found == TIMES
    assert placed == TIMES


def seconds(work: Callable[[], object]) -> float:
    """The CPU that it takes, the best of a few rounds."""
    taken = []
    for _ in range(ROUNDS):
        before = time.process_time()
        work()
        taken.append(time.process_time() - before)
    return min(taken)


def made(folder: Path, count: int) -> None:
    """Write a trail with its heads, as a daemon would in a long time."""
    connection = connect(folder / "agenthost.db")
    tables.metadata.create_all(connection)
    connection.commit()
    with closing(sqlite3.connect(folder / "agenthost.db")) as database:
        marks = ", ".join("?" * 11)
        statement = f"INSERT INTO audit_entries VALUES ({marks})"
        key, tree, heads = SigningKey(bytes(32)), Tree(), list[dict[str, object]]()
        for page in entries(count):
            database.executemany(statement, page)
            for row in page:
                tree.push(leaf_hash(row[10]))
            facts = {
                "number": len(heads) + 1,
                "node": "main",
                "at": page[-1][3],
                "before": signed.digest_of(heads[-1] if heads else None),
                "size": tree.size,
                "root": tree.root.hex(),
                "last_id": page[-1][0],
                "last_hash": page[-1][9],
            }
            heads.append(signed.made(key, facts))
        database.commit()
    signed.append(folder / "audit.heads", heads)


def entries(count: int) -> Iterator[list[Entry]]:
    last: list[Entry] = []
    for _ in range(count // 250):
        last = follow(last[-1:], 250, NOTE)[-250:]
        yield last


def test_a_million_entries_are_verified_quickly(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    made(tmp_path, MANY)

    def bare() -> None:
        digest = bytes(32)
        with closing(sqlite3.connect(tmp_path / "agenthost.db")) as database:
            query = "SELECT canonical FROM audit_entries ORDER BY id"
            for (row,) in database.execute(query):
                digest = sha256(digest + row).digest()

    def whole() -> None:
        assert check_folder(tmp_path, None).seen == MANY

    yardstick = seconds(bare)
    taken = seconds(whole)
    size = (tmp_path / "agenthost.db").stat().st_size / MANY
    figures(
        f"{MANY} entries: target {VERIFY_RATIO} x a bare chain ({yardstick:.2f} s), "
        f"result {taken / yardstick:.2f} x ({taken:.2f} s); {size:.0f} bytes an entry"
    )
    assert taken <= VERIFY_RATIO * yardstick


def test_an_append_costs_little(tmp_path: Path, figures: Callable[[str], None]) -> None:
    connection = connect(tmp_path / "agenthost.db")
    tables.metadata.create_all(connection)
    connection.commit()
    trail = Trail()
    trail.node = "main"
    events = [
        MessageReceived(
            "0a6f1c9e-7d1b-4a55-9d0c-3b1f3f6f2a10",
            1774224000.0 + n // 3,
            "ada",
            "5e0c",
            "91d2",
            caller="operator",
            text="What time is it?",
            by="operator:operator",
        )
        for n in range(APPENDS)
    ]

    def append() -> None:
        with connection.begin():
            for first in range(0, APPENDS, OF_A_MESSAGE):
                for event in events[first : first + OF_A_MESSAGE]:
                    trail._append(connection, facts_of(event))
                trail.flush(connection)

    each = seconds(append) / APPENDS * 1e6
    figures(f"append: target {APPEND_MICROSECONDS} us, result {each:.1f} us of CPU")
    assert each <= APPEND_MICROSECONDS
