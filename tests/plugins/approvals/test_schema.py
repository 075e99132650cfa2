"""A database of before questions about money: its approvals go on."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from agenthost_approvals.questions import digest_of
from agenthost_approvals.rows import State, approval_of
from agenthost_approvals.schema import SCHEMA
from agenthost_approvals.tables import ONE, metadata
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import MetaData, create_engine
from sqlalchemy.pool import StaticPool

from tests.plugins.storage.sqlite.upgrades import assert_steps_reach_newest

EARLIER = """
CREATE TABLE schema_versions (name TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL);
INSERT INTO schema_versions VALUES ('approvals', 0);
CREATE TABLE approvals (
    id TEXT NOT NULL, turn_id TEXT NOT NULL, call_id TEXT NOT NULL,
    agent_id TEXT NOT NULL, session_id TEXT NOT NULL, tool TEXT NOT NULL,
    shown TEXT NOT NULL, digest TEXT NOT NULL, asked_by TEXT NOT NULL,
    may_answer TEXT NOT NULL, state TEXT NOT NULL, created_at FLOAT NOT NULL,
    deadline FLOAT NOT NULL, answered_by TEXT, answered_at FLOAT, reason TEXT,
    answers TEXT, carried INTEGER NOT NULL, owner TEXT NOT NULL, labels TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX approvals_by_call ON approvals (turn_id, call_id, digest);
CREATE INDEX approvals_open ON approvals (carried) WHERE carried = 0;
"""
SHOWN = json.dumps({"agent": "ada", "question": {"text": "Pay?"}, "tool": "pay"})
ROW = (
    *("a", "turn", "call", "agent", "session", "pay", SHOWN, digest_of(SHOWN)),
    *("operator:operator", "*", "pending", 1.0, 9e9, None, None, None, None, 0),
    *("operator:operator", "[]"),
)


def test_the_steps_make_what_a_new_database_has() -> None:
    first = MetaData()
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as made:
        made.executescript(EARLIER)
        engine = create_engine("sqlite://", creator=lambda: made, poolclass=StaticPool)
        with engine.connect() as connection:
            first.reflect(connection, only=list(metadata.tables))
    assert_steps_reach_newest(SCHEMA, first)


async def test_an_open_question_of_before_is_one_about_a_call(tmp_path: Path) -> None:
    path = tmp_path / "agenthost.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(EARLIER)
        marks = ", ".join("?" * len(ROW))
        connection.execute(f"INSERT INTO approvals VALUES ({marks})", ROW)
        connection.commit()
    store = await SqliteStore.open(path, [SCHEMA])
    row = await store.first(ONE, {"id": "a"})
    await store.close()
    assert row is not None
    approval = approval_of(row)
    assert (approval.state, approval.expense) == (State.PENDING, None)
    assert (approval.purse, approval.behind, approval.depth) == ("", "", 0)
