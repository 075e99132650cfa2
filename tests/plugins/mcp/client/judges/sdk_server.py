"""A server on the official Python SDK: its arguments are the transport and a port."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Resolve, Sample
from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

server = MCPServer("judge")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def renew(ctx: Context[Any, Any]) -> str:
    """Offer another tool from now on."""

    def later() -> str:
        """Be there later."""
        return "here"

    server.add_tool(later)
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "renewed"


def asked(country: str) -> Sample:
    """Ask the client's model."""
    said = TextContent(type="text", text=f"What is the capital of {country}?")
    messages = [SamplingMessage(role="user", content=said)]
    return Sample(messages, max_tokens=50, system_prompt="One word.")


@server.tool()
def capital(
    country: str, answer: Annotated[CreateMessageResult, Resolve(asked)]
) -> str:
    """Say what the capital of a country is."""
    assert isinstance(answer.content, TextContent)
    return f"{country}: {answer.content.text} ({answer.stop_reason})"


def looked_up(city: str) -> Sample:
    """Ask the client's model with a tool, which it has called once already."""
    said = TextContent(type="text", text=f"Compare {city} with Rome.")
    use = ToolUseContent(id="c1", name="weather", input={"city": "Rome"})
    sunny = TextContent(type="text", text="sunny")
    result = ToolResultContent(tool_use_id="c1", content=[sunny])
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return Sample(
        [
            SamplingMessage(role="user", content=said),
            SamplingMessage(role="assistant", content=use),
            SamplingMessage(role="user", content=result),
        ],
        max_tokens=50,
        tools=[Tool(name="weather", description="Tells it.", input_schema=schema)],
        tool_choice=ToolChoice(mode="auto"),
    )


@server.tool()
def compare(
    city: str, answer: Annotated[CreateMessageResultWithTools, Resolve(looked_up)]
) -> str:
    """Say which call the client's model wants made."""
    (use,) = answer.content_as_list
    assert isinstance(use, ToolUseContent)
    return f"{city}: {use.name} {use.input} ({answer.stop_reason})"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
