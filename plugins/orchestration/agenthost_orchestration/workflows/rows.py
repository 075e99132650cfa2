"""How a workflow is kept: its row, and what is read of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from agenthost import Row

from .definition import ErrorMode, Mode, Workflow, WorkflowStep

ALL = "SELECT * FROM workflows ORDER BY created_at, id"
ONE = "SELECT * FROM workflows WHERE id = :id"
NAMED = "SELECT * FROM workflows WHERE name = :name ORDER BY created_at, id"

_FIELDS = frozenset(each.name for each in fields(WorkflowStep))


def row_of(workflow: Workflow, digest: str = "") -> dict[str, object]:
    """Write a workflow as its row; ``digest`` is that of the file that it is from."""
    definition = {
        "description": workflow.description,
        "max_cost_micro_usd": workflow.max_cost_micro_usd,
        "steps": [asdict(step) for step in workflow.steps],
    }
    return {
        "id": workflow.id,
        "name": workflow.name,
        "definition": json.dumps(definition),
        "created_at": workflow.created_at,
        "updated_at": workflow.updated_at,
        "file": workflow.file,
        "digest": digest,
        "owner": workflow.owner,
        "labels": json.dumps(sorted(workflow.labels)),
    }


def workflow_of(row: Row) -> Workflow:
    """Read a workflow from its row."""
    definition = json.loads(row["definition"])
    return Workflow(
        id=row["id"],
        name=row["name"],
        description=definition["description"],
        steps=tuple(map(step_of, definition["steps"])),
        max_cost_micro_usd=definition["max_cost_micro_usd"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        owner=row["owner"],
        file=row["file"],
        labels=frozenset(json.loads(row["labels"])),
    )


def step_of(kept: Mapping[str, Any]) -> WorkflowStep:
    """Read a step of a definition that is kept."""
    # A later release may have kept more, and gone back.
    known = {name: value for name, value in kept.items() if name in _FIELDS}
    modes = {"mode": Mode(kept["mode"]), "error_mode": ErrorMode(kept["error_mode"])}
    return WorkflowStep(**{**known, **modes})
