"""Agents as rows, written and read back."""

from __future__ import annotations

import json

from agenthost import Agent, AgentMode, AgentState, Manifest, Row

from .codec import dump_json


def row_of(agent: Agent) -> dict[str, object]:
    """Write an agent as its row."""
    return {
        "id": agent.id,
        "name": agent.name,
        "state": agent.state.value,
        "mode": agent.mode.value,
        "session_id": agent.session_id,
        "manifest": agent.manifest.model_json(),
        "pinned_model": dump_json(agent.pinned_model) if agent.pinned_model else None,
        "created_at": agent.created_at,
        "updated_at": agent.updated_at,
        "parent": agent.parent,
        "reason": agent.reason,
        "crashes": dump_json(agent.crashes) if agent.crashes else "",
    }


def agent_of(row: Row) -> Agent:
    """Read an agent from its row."""
    pinned = json.loads(row["pinned_model"]) if row["pinned_model"] else None
    return Agent(
        id=row["id"],
        name=row["name"],
        state=AgentState(row["state"]),
        mode=AgentMode(row["mode"]),
        session_id=row["session_id"],
        manifest=Manifest.from_json(row["manifest"]),
        pinned_model=(pinned[0], pinned[1]) if pinned else None,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        parent=row["parent"],
        reason=row["reason"],
        crashes=tuple(json.loads(row["crashes"])) if row["crashes"] else (),
    )
