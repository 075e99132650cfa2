"""What the turn engine reads of an agent's manifest."""

from __future__ import annotations

from typing import Annotated

from agenthost import ManifestTable
from agenthost_toml.types import Count, Table
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


class Heartbeat(Table):
    """How long a turn may be silent."""

    heartbeat_interval_secs: Annotated[int, Field(ge=0, le=86_400)] = Field(
        0,
        description="A turn that says nothing and ends no step for twice so many "
        "seconds is ended, and the agent has crashed; 0 is never. "
        "What it thinks does not count.",
    )


class Routing(Table):
    """Models by how much a request asks for."""

    simple_model: str = Field(
        "",
        description="The model for requests below `simple_threshold`; nothing is the "
        "agent's own. An agent in the mode Stable keeps its model.",
    )
    medium_model: str = Field("", description="The model for those between the two.")
    complex_model: str = Field(
        "", description="The model for requests from `complex_threshold` on."
    )
    simple_threshold: Count = Field(
        100,
        description="A request counts a quarter of its characters, 20 for each tool, "
        "30 for each mark of code, 15 for each message of the conversation above ten, "
        "and a tenth of the system prompt's characters above 500.",
    )
    complex_threshold: Count = Field(
        500, description="Where requests begin to be complex."
    )


ANSWERING = ManifestTable("model", Answering)
HEARTBEAT = ManifestTable("autonomous", Heartbeat)
ROUTING = ManifestTable("routing", Routing)
