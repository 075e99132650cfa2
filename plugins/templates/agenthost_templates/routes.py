"""``/api/templates``: list, show, and make an agent of one."""

from __future__ import annotations

import asyncio
from typing import Any, NotRequired

from agenthost import Answer, Call, Manifest, Reply, RouteGroup
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from .catalogue import Template, all_templates, manifest_of, template

routes = RouteGroup("templates")


class TemplateRow(TypedDict):
    """A template in the list; ``fault`` says what is wrong with its file."""

    name: str
    description: str
    path: str
    fault: NotRequired[str]


class TemplateList(TypedDict):
    """``GET /api/templates``."""

    templates: list[TemplateRow]
    total: int


class TemplateDetail(TypedDict):
    """``GET /api/templates/{name}``."""

    name: str
    description: str
    path: str
    manifest: dict[str, Any]
    manifest_toml: str


class FromTemplate(BaseModel, defer_build=True):
    """``POST /api/templates/{name}/agents``."""

    name: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="The agent's name; without it the template's own",
    )


class AgentMade(TypedDict):
    """The agent that was made, and what in its manifest has no effect."""

    agent_id: str
    name: str
    warnings: list[str]


@routes.get("/api/templates", scope="agents:read", cost=5, answer=TemplateList)
async def list_templates(call: Call) -> Answer:
    """List the templates, by name; a damaged file is listed with its fault."""
    found = await asyncio.to_thread(all_templates, call.host.home)
    return {"templates": [_row(each) for each in found], "total": len(found)}


@routes.get("/api/templates/<name>", scope="agents:read", answer=TemplateDetail)
async def get_template(call: Call, name: str) -> Answer:
    """Show one template with its manifest."""
    found = await asyncio.to_thread(template, call.host.home, name)
    shown = _shown(found.manifest) if found.manifest else {}
    return {**_row(found), "manifest": shown, "manifest_toml": found.text}


@routes.post(
    "/api/templates/<name>/agents",
    scope="agents:write",
    cost=50,
    body=FromTemplate,
    answer=AgentMade,
    status=201,
)
async def create_from_template(call: Call, name: str, body: FromTemplate) -> Answer:
    """Make an agent of a template, as if its manifest had been sent."""
    text = await asyncio.to_thread(manifest_of, call.host.home, name, body.name)
    agent, warnings = await call.host.agents.spawn(call.context, text)
    return Reply({"agent_id": agent.id, "name": agent.name, "warnings": warnings}, 201)


def _row(found: Template) -> TemplateRow:
    about = found.manifest.description if found.manifest else ""
    row: TemplateRow = {"name": found.name, "description": about, "path": found.path}
    if found.fault:
        row["fault"] = found.fault
    return row


def _shown(manifest: Manifest) -> dict[str, Any]:
    keys = {"name", "description", "module", "tags", "model", "capabilities"}
    shown: dict[str, Any] = manifest.model_dump(mode="json", include=keys)
    return shown
