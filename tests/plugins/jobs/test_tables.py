"""A database of an earlier release is brought up to date, with its jobs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agenthost import JobState, SystemClock
from agenthost_jobs.queue import EmbeddedJobs
from agenthost_jobs.schema import SCHEMA
from agenthost_jobs.tables import METADATA
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import MetaData, create_engine
from sqlalchemy.pool import StaticPool

from tests.plugins.storage.sqlite.upgrades import assert_steps_reach_newest

EARLIER = """
CREATE TABLE schema_versions (name TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL);
INSERT INTO schema_versions VALUES ('jobs', 0);
CREATE TABLE job (
    id TEXT NOT NULL, "key" TEXT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL,
    state TEXT NOT NULL, due FLOAT NOT NULL, owner TEXT, epoch INTEGER NOT NULL,
    attempts INTEGER NOT NULL, result TEXT, error TEXT, created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL, PRIMARY KEY (id), UNIQUE ("key")
);
CREATE INDEX job_state_due ON job (state, due);
CREATE TABLE step (
    job TEXT NOT NULL, name TEXT NOT NULL, output TEXT NOT NULL,
    PRIMARY KEY (job, name), FOREIGN KEY(job) REFERENCES job (id) ON DELETE CASCADE
);
INSERT INTO job VALUES
    ('a', 'k', 'walk', '[1]', 'running', 5, 'embedded', 1, 1, NULL, NULL, 5, 5);
INSERT INTO step VALUES ('a', 'one', '"kept"');
"""


def test_the_steps_make_what_a_new_database_has() -> None:
    first = MetaData()
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as made:
        made.executescript(EARLIER)
        engine = create_engine("sqlite://", creator=lambda: made, poolclass=StaticPool)
        with engine.connect() as connection:
            first.reflect(connection, only=list(METADATA.tables))
    assert_steps_reach_newest(SCHEMA, first)


async def test_jobs_of_an_earlier_release_go_on(tmp_path: Path) -> None:
    path = tmp_path / "agenthost.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(EARLIER)
    store = await SqliteStore.open(path, [SCHEMA])
    jobs = EmbeddedJobs(store, SystemClock())
    await jobs.start()
    [job] = await jobs.list()
    await jobs.stop()
    await store.close()
    assert (job.state, job.attempts, job.until) == (JobState.PENDING, 1, None)
    assert (job.holder, job.owner, job.labels) == (None, "", frozenset())
