"""What the turn engine reads of an agent's manifest: how its model is to answer."""

from __future__ import annotations

from typing import Annotated

from agenthost import ManifestTable
from agenthost_toml.types import Table
from pydantic import Field

StopWord = Annotated[str, Field(min_length=1, max_length=100)]


class Answering(Table):
    """How the model answers; what is left out is the provider's default."""

    top_p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="The share of likely words it chooses from; with `temperature`, "
        "some models take that alone.",
    )
    stop: Annotated[tuple[StopWord, ...], Field(max_length=4, strict=False)] = Field(
        (), description="Words before which an answer ends, at most four."
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        None, description="Makes answers repeatable, where the provider can."
    )
    tool_choice: Annotated[str, Field(max_length=64)] = Field(
        "",
        description="`auto`, `none`, `required`, or the tool a turn calls first.",
    )
    parallel_tool_calls: bool | None = Field(
        None, description="Whether one step may call several tools."
    )


ANSWERING = ManifestTable("model", Answering)
