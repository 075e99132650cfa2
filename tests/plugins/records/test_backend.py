"""What the records plugin offers, and a database that an earlier release left."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    ConfigError,
    Context,
    ModelTotal,
    Total,
    TurnOptions,
    TurnState,
    user_message,
)
from agenthost.context import OPERATOR
from agenthost.testing import Daemons, ManualClock, RunningDaemon
from agenthost_records import register_backend, register_schema

THEN = 1_767_225_600.0
EARLIER = Path(__file__).with_name("earlier.sql")
"""Made by the release before the rows moved here: two agents, a tool call, a stopped
turn, a compacted session, a pinned model, thinking, memory of both kinds."""


def test_register_backend_offers_the_rows_of_a_store() -> None:
    [spec] = register_backend()
    assert (spec.port, spec.name) == ("records", "store")


def test_register_schema_offers_the_kernels_rows_and_memory() -> None:
    offered = {s.name: sorted(s.metadata.tables) for s in register_schema()}
    assert offered == {
        "kernel": [
            *("agents", "messages", "nodes", "pins", "session_holders", "sessions"),
            *("tool_calls", "turns", "usage", "views"),
        ],
        "kv": ["kv", "kv_index_mark"],
        "retention": ["retention_marks", "usage_days"],
        "persons": ["person_links", "persons"],
        "search": [
            "message_texts",
            "message_texts_index_mark",
            "message_texts_mark",
        ],
        "uploads": ["uploads"],
    }
    assert [len(spec.steps) for spec in register_schema()] == [11, 3, 0, 0, 1, 0]


def test_steps_stand_in_the_order_in_which_databases_took_them() -> None:
    """A database counts its steps: one put before another would be taken for it."""
    kernel = next(spec for spec in register_schema() if spec.name == "kernel")
    assert [step.__name__ for step in kernel.steps] == [
        "write_less",
        "go_on_in_place",
        "name_sessions",
        "owners_and_labels",
        "tell_who_writes",
        "tell_why_it_stopped",
        "tell_what_was_asked",
        "tell_what_it_rests_on",
        "line_up",
        "tell_of_their_lives",
        "see_it_otherwise",
    ]


def test_importing_the_plugin_imports_no_sqlalchemy() -> None:
    script = "import sys, agenthost_records; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


async def test_without_the_plugin_the_port_is_missed_by_name(daemons: Daemons) -> None:
    with pytest.raises(ConfigError, match="no plugin serves the port records"):
        await daemons.start(config='[plugins]\ndisable = ["records"]\n')


def restore(path: Path) -> None:
    """Make the earlier release's database again."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(EARLIER.read_text(encoding="utf-8"))


def layout(path: Path) -> set[tuple[Any, ...]]:
    """Read the columns, keys and indexes of the plugin's tables, and their versions.

    Not the text they were declared with: a column that was added stands elsewhere in
    it than one that was there from the start.
    """
    ours = {table for spec in register_schema() for table in spec.metadata.tables}
    found: set[tuple[Any, ...]] = set()
    with closing(sqlite3.connect(path)) as connection:
        for table in ours:
            columns = connection.execute(f"pragma table_info({table})")
            found |= {(table, name, *facts) for _, name, *facts in columns}
        made = connection.execute("select tbl_name, name, sql from sqlite_master")
        found |= {
            (name, " ".join(sql.split()))
            for table, name, sql in made
            if table in ours and name not in ours and sql
        }
        versions = connection.execute("select name, version from schema_versions")
        found |= {(n, str(v)) for n, v in versions if n in {"kernel", "kv"}}
    return found


@pytest.fixture
async def earlier(daemons: Daemons, tmp_path: Path) -> RunningDaemon:
    """A daemon on a home that an earlier release left."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    restore(home / "data" / "agenthost.db")
    return await daemons.start(home=home, clock=ManualClock(THEN + 60))


async def test_an_earlier_database_is_brought_up_to_the_layout_of_a_new_one(
    daemons: Daemons, earlier: RunningDaemon
) -> None:
    new = await daemons.start()
    before, after = (
        layout(running.daemon.data_dir / "agenthost.db") for running in (earlier, new)
    )
    assert before == after
    assert len(after) > 9


async def test_only_running_turns_are_looked_for_at_a_boot(
    earlier: RunningDaemon,
) -> None:
    plan = "explain query plan update turns set state = 'x' where state = 'running'"
    path = earlier.daemon.data_dir / "agenthost.db"
    with closing(sqlite3.connect(path)) as connection:
        (step,) = connection.execute(plan)
    assert "turns_running" in step[-1]


async def test_agents_and_conversations_of_an_earlier_release_go_on(
    earlier: RunningDaemon,
) -> None:
    ada, bob = earlier.daemon.agents.list()
    assert (ada.name, ada.mode, ada.pinned_model) == (
        "ada",
        "Stable",
        ("scripted", "scripted-model"),
    )
    assert ada.manifest.description == "Kept by an earlier release."
    assert (await earlier.daemon.sessions.get(ada.session_id)).thinking
    said = (await earlier.known_agent("ada").session())["messages"]
    assert [m["content"] for m in said] == [
        "remember blue",
        "",
        "I keep it.",
        "count",
        "half",
        "once",
        "You said: once",
    ]
    assert said[1]["tools"][0]["result"] == "remembered self.colour"
    assert await earlier.known_agent("bob").ask("more") == "You said: more"
    asked = [message.text for message in earlier.model.requests[0].messages]
    assert asked[0].startswith("Summary of the conversation so far:")
    assert asked[1:] == [
        "word 3",
        "You said: word 3",
        "after",
        "You said: after",
        "more",
    ]
    named = {agent.id: agent.name for agent in earlier.daemon.agents.list()}
    listed = {
        (named[s.agent_id], s.message_count, s.title)
        for s in await earlier.daemon.sessions.list()
    }
    assert listed == {("ada", 7, "remember blue"), ("bob", 7, "word 0")}
    assert bob.pinned_model is None


async def test_turns_of_an_earlier_release_are_not_run_again(
    earlier: RunningDaemon,
) -> None:
    daemon = earlier.daemon
    ada = daemon.agents.find("ada")
    turn = daemon.turns.start(
        Context(OPERATOR),
        ada,
        user_message("once"),
        TurnOptions(turn_id="turn-once"),
    )
    assert (await turn.result()).text == "You said: once"
    assert earlier.model.requests == []
    known = await daemon.journal.find("33107772-ace1-45c4-9126-4f5d5f40faa1")
    assert known is not None
    assert (known.state, known.result.text) == (TurnState.CANCELLED, "half")


async def test_memory_and_usage_of_an_earlier_release_are_kept(
    earlier: RunningDaemon,
) -> None:
    daemon = earlier.daemon
    ada = daemon.agents.find("ada")
    assert await daemon.kv.items(ada.id) == [("self.colour", {"name": "blué"})]
    assert await daemon.kv.get("shared", "shared.plan") == ([1, None], frozenset())
    assert await daemon.usage.of_agent(ada.id) == Total(4, 1055, 18, 1091)
    assert await daemon.usage.by_model() == [
        ModelTotal(10, 1115, 48, 1211, "scripted", "scripted-model")
    ]
    period = await daemon.usage.period(THEN)
    assert (period.requests, period.agents, period.oldest) == (10, 2, THEN)
