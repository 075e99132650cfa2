"""The tables of triggers and of their firings."""

from __future__ import annotations

from sqlalchemy import REAL, Column, Index, Integer, MetaData, Table, Text

metadata = MetaData()

triggers = Table(
    "triggers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False, index=True),
    Column("pattern", Text, nullable=False),
    Column("pattern_text", Text, nullable=False),
    Column("prompt_template", Text, nullable=False),
    Column("creator", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("enabled", Integer, nullable=False),
    Column("fire_count", Integer, nullable=False),
    Column("max_fires", Integer, nullable=False),
    Column("cooldown_secs", REAL),
    Column("session", Text, nullable=False),
    Column("keep", Integer, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("delivery_target", Text, nullable=False),
    Column("allowance_micro_usd", Integer, nullable=False),
    Column("own_events", Integer, nullable=False),
    Column("last_fired_at", REAL),
    Column("paused", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)

firings = Table(
    "trigger_firings",
    metadata,
    Column("event_id", Text, primary_key=True),
    Column("trigger_id", Text, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("at", REAL, nullable=False, index=True),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
Index(
    "trigger_firings_by_subject", firings.c.trigger_id, firings.c.subject, firings.c.at
)
