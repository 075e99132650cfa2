"""Runs of a database of before they could ask for money."""

from __future__ import annotations

from agenthost import SchemaSpec
from agenthost_orchestration import ask_about_runs
from agenthost_orchestration.workflows.run_tables import metadata
from sqlalchemy import MetaData

from tests.plugins.storage.sqlite.upgrades import assert_steps_reach_newest


def test_the_steps_make_what_a_new_database_has() -> None:
    first = MetaData()
    for table in metadata.tables.values():
        table.to_metadata(first)
    runs = first.tables["workflow_runs"]
    runs._columns.remove(runs.c.asks)
    spec = SchemaSpec("workflow_runs", metadata, (ask_about_runs,))
    assert_steps_reach_newest(spec, first)
