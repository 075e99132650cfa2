"""How a workflow is kept: its row, and what is read of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from agenthost import Row

from .definition import ErrorMode, Listed, Mode, Workflow, WorkflowStep

LISTED = (
    "SELECT id, name, description, steps, max_cost_micro_usd, created_at, updated_at, "
    "owner, file FROM workflows ORDER BY created_at, id"
)
"""Without the definitions: a thousand of them are a gigabyte at most."""
ONE = "SELECT * FROM workflows WHERE id = :id"
NAMED = "SELECT * FROM workflows WHERE name = :name ORDER BY created_at, id"

_FIELDS = frozenset(each.name for each in fields(WorkflowStep))


def row_of(workflow: Workflow, digest: str = "") -> dict[str, object]:
    """Write a workflow as its row; ``digest`` is that of the file that it is from."""
    return {
        "id": workflow.id,
        "name": workflow.name,
        "description": workflow.description,
        "steps": len(workflow.steps),
        "max_cost_micro_usd": workflow.max_cost_micro_usd,
        "definition": json.dumps([asdict(step) for step in workflow.steps]),
        "created_at": workflow.created_at,
        "updated_at": workflow.updated_at,
        "file": workflow.file,
        "digest": digest,
        "owner": workflow.owner,
        "labels": json.dumps(sorted(workflow.labels)),
    }


def workflow_of(row: Row) -> Workflow:
    """Read a workflow from its row."""
    return Workflow(
        id=row["id"],
        name=row["name"],
        description=row["description"],
        steps=tuple(map(step_of, json.loads(row["definition"]))),
        max_cost_micro_usd=row["max_cost_micro_usd"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        owner=row["owner"],
        file=row["file"],
        labels=frozenset(json.loads(row["labels"])),
    )


def listed_of(row: Row) -> Listed:
    """Read a workflow of a list from its row."""
    return Listed(*row)


def step_of(kept: Mapping[str, Any]) -> WorkflowStep:
    """Read a step of a definition that is kept."""
    # A later release may have kept more, and gone back.
    known = {name: value for name, value in kept.items() if name in _FIELDS}
    modes = {"mode": Mode(kept["mode"]), "error_mode": ErrorMode(kept["error_mode"])}
    return WorkflowStep(**{**known, **modes})
