"""What a new agent is made of: a manifest that is sent, or a template by its name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol, runtime_checkable

from agenthost import Call, Mountable, Unavailable
from pydantic import Field, model_validator

from .shapes import Body


class CreateAgent(Body):
    """``POST /api/agents``: either a manifest, or a template."""

    manifest_toml: str | None = Field(
        None,
        description="The agent's manifest, TOML text",
        json_schema_extra={"minLength": 1, "maxLength": 1024 * 1024},
    )
    template: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$",
        description="A template's name, in place of a manifest",
    )
    name: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="The agent's name, in place of the template's own",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> CreateAgent:
        if (self.manifest_toml is None) == (self.template is None):
            raise ValueError("give either manifest_toml or template")
        if self.name is not None and self.template is None:
            raise ValueError(
                "name goes with template; a manifest says its name itself, "
                'as name = "..."'
            )
        return self


@runtime_checkable
class Templates(Protocol):
    """What knows templates, among the routes that plugins offer."""

    def manifest_of(self, home: Path, template: str, name: str | None) -> str:
        """Give a template's manifest, under another name where one is given."""


async def manifest_of(call: Call, body: CreateAgent) -> str:
    """Give the manifest that a request sends or names.

    Raises:
        NotFound: There is no such template.
        Unavailable: No plugin has templates.
    """
    if body.template is None:
        return body.manifest_toml or ""
    templates = _templates(call)
    return await asyncio.to_thread(
        templates.manifest_of, call.host.home, body.template, body.name
    )


def _templates(call: Call) -> Templates:
    host = call.host
    for key, group in host.registry.offered(Mountable):  # type: ignore[type-abstract]  # reason: three unlike classes are mounted
        if isinstance(group, Templates) and host.plugins.healthy(key):
            return group
    raise Unavailable(
        "template: no plugin has templates; enable plugin:templates, "
        "or send manifest_toml"
    )
