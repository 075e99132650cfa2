"""What a start reads of schedules: texts, since it imports no SQLAlchemy."""

from __future__ import annotations

KIND = "schedule"
"""What schedules are called as a source of occasions."""
ONE = "SELECT * FROM schedules WHERE id = :id"
ALL = "SELECT * FROM schedules ORDER BY created_at, id"
ON = "SELECT * FROM schedules WHERE enabled = 1 AND next_at IS NOT NULL"
DUE = (
    "SELECT * FROM schedules WHERE enabled = 1 AND next_at <= :now "
    "ORDER BY next_at, id LIMIT 50"
)
NEAREST = "SELECT min(next_at) AS next_at FROM schedules WHERE enabled = 1"
AGENTS = "SELECT DISTINCT agent_id FROM schedules WHERE agent_id <> ''"
