"""What docs/workflows.md shows is what there is."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from agenthost.testing import RunningDaemon
from agenthost_orchestration.workflows.commands import workflow
from agenthost_orchestration.workflows.definition import WorkflowStep
from agenthost_orchestration.workflows.documents import read_document
from agenthost_orchestration.workflows.routes import routes

PAGE = (Path(__file__).parents[4] / "docs" / "workflows.md").read_text("utf-8")


def test_the_workflow_of_the_page_is_one_without_doubts() -> None:
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    document = read_document("review.toml", text.encode())
    assert document.warnings == ()
    assert len(document.draft.steps) == 5


def test_the_page_names_every_field_and_its_default() -> None:
    table = PAGE[PAGE.index("| of a step |") : PAGE.index("In a prompt")]
    first = "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    named = set(re.findall(r"`(\w+)`", first))
    assert named == {each.name for each in fields(WorkflowStep)}
    plain = WorkflowStep("step")
    for name in ("timeout_secs", "max_retries", "max_iterations"):
        [row] = [row for row in table.splitlines() if row.startswith(f"| `{name}`")]
        assert row.rstrip(" |").endswith(str(getattr(plain, name)))


async def test_the_page_names_every_route_and_command(daemon: RunningDaemon) -> None:
    named = set(re.findall(r"^\| `([A-Z]+) (/\S+)` \| `(\S+)` \|", PAGE, re.MULTILINE))
    assert named >= {
        (each.method, each.path.replace("<workflow_id>", "{id}"), each.scope)
        for each in routes.routes
    }
    for name in workflow.commands:
        assert f"agenthost workflow {name}" in PAGE
    body = {"steps": [{"agent_name": "a"}, {"agent_name": "a", "mode": "lop"}]}
    answer = await daemon.http.post("/api/workflows", json=body)
    assert f"    {answer.json()['error']}\n" in PAGE
