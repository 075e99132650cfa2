"""How ``/v1`` answers."""

from __future__ import annotations

from agenthost_toml.types import Names, Table
from pydantic import Field


class OpenAISection(Table):
    """``[openai]``: what is served under `/v1`."""

    passthrough: bool = Field(
        default=False,
        description="Let ``<provider>/<model>``, where no agent is called so, be "
        "answered by that model itself, for who has the right ``models:use``.",
    )
    error_objects: bool = Field(
        default=False,
        description="Write errors as OpenAI's nested object instead of a text.",
    )
    image_hosts: Names = Field(
        (),
        description="Hosts of private networks that images may be fetched from all "
        "the same.",
    )
