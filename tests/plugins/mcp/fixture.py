"""Everything that the protocol's own suite asks a server for, as one plugin."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from agenthost import (
    Audio,
    Effect,
    File,
    Host,
    Image,
    InvalidInput,
    JsonObject,
    Text,
    ToolContext,
    ToolResult,
    ToolSource,
    ToolSpec,
    hookimpl,
)
from agenthost_mcp.server.link import Link, client_of
from agenthost_mcp.server.source import (
    Contents,
    McpSource,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    Visit,
)

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAA"
    "AABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
Call = Callable[[ToolContext, Any], Awaitable[ToolResult]]
EMPTY: JsonObject = {"type": "object", "properties": {}}
RICH: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {
        "properties": {"contactMethod": {"const": "phone"}},
        "required": ["contactMethod"],
    },
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def text_schema(name: str, **more: Any) -> JsonObject:
    properties = {name: {"type": "string", **more}}
    return {"type": "object", "properties": properties, "required": [name]}


def file_of(uri: str, kind: str, text: str) -> File:
    return File(uri, kind, base64.b64encode(text.encode()).decode(), uri)


def elicitation(message: str, **properties: JsonObject) -> JsonObject:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
    }
    params = {"message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def sampling(text: str, most: int = 100) -> JsonObject:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    params = {"messages": [message], "maxTokens": most}
    return {"method": "sampling/createMessage", "params": params}


TEXT = {"type": "string"}
NAME = {"user_name": elicitation("What is your name?", name=TEXT)}
ROOTS: JsonObject = {"method": "roots/list", "params": {}}
CONFIRM = {"confirm": elicitation("Please confirm", ok={"type": "boolean"})}
DEFAULTS = elicitation(
    "Your details",
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    verified={"type": "boolean", "default": True},
)
TITLED = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
    {"const": "value3", "title": "Third Option"},
]
PLAIN = ["option1", "option2", "option3"]
ENUMS = elicitation(
    "Choose",
    untitledSingle={"type": "string", "enum": PLAIN},
    titledSingle={"type": "string", "oneOf": TITLED},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": PLAIN}},
    titledMulti={"type": "array", "items": {"anyOf": TITLED}},
)


def client(context: ToolContext) -> Link:
    link = client_of(context)
    if link is None:
        raise InvalidInput("", "only an MCP client can call this")
    return link


def says(*parts: Any, text: str = "", structured: Any = None) -> Call:
    async def call(_: ToolContext, __: Any) -> ToolResult:
        return ToolResult(text, parts=parts, structured=structured)

    return call


async def fails(_: ToolContext, __: Any) -> ToolResult:
    raise InvalidInput("", "This tool intentionally returns an error for testing")


async def logs(context: ToolContext, _: Any) -> ToolResult:
    link = client(context)
    for line in ("started", "processing data", "completed"):
        link.log("info", f"Tool execution {line}")
        await asyncio.sleep(0.05)
    return ToolResult("logged")


async def progresses(context: ToolContext, _: Any) -> ToolResult:
    for done in (0, 50, 100):
        context.progress(done, 100)
        await asyncio.sleep(0.11)
    return ToolResult("done")


async def samples(context: ToolContext, given: Any) -> ToolResult:
    said = await client(context).ask({"answer": sampling(given["prompt"])})
    return ToolResult(f"LLM response: {said['answer']['content']['text']}")


async def elicits(context: ToolContext, given: Any) -> ToolResult:
    asked = elicitation(given["message"], username=TEXT, email=TEXT)
    said = await client(context).ask({"user": asked})
    return ToolResult(f"User response: {json.dumps(said['user'])}")


def asks(request: JsonObject) -> Call:
    async def call(context: ToolContext, _: Any) -> ToolResult:
        said = (await client(context).ask({"user": request}))["user"]
        content = json.dumps(said.get("content"))
        told = f"action={said['action']}, content={content}"
        return ToolResult(f"Elicitation completed: {told}")

    return call


async def greets(context: ToolContext, _: Any) -> ToolResult:
    said = await client(context).ask(NAME)
    return ToolResult(f"Hello, {said['user_name']['content']['name']}!")


async def wonders(context: ToolContext, _: Any) -> ToolResult:
    asked = {"capital_question": sampling("What is the capital of France?")}
    said = await client(context).ask(asked)
    return ToolResult(said["capital_question"]["content"]["text"])


async def roots(context: ToolContext, _: Any) -> ToolResult:
    said = await client(context).ask({"client_roots": ROOTS})
    return ToolResult(json.dumps(said["client_roots"]["roots"]))


async def keeps_state(context: ToolContext, _: Any) -> ToolResult:
    link = client(context)
    await link.ask(CONFIRM, state="asked")
    if link.state != "asked":
        raise InvalidInput("", "there is no state")
    return ToolResult("state-ok")


async def asks_much(context: ToolContext, _: Any) -> ToolResult:
    asked = {**NAME, "greeting": sampling("Generate a greeting", 50)}
    said = await client(context).ask({**asked, "client_roots": ROOTS}, state="much")
    return ToolResult(json.dumps(said))


async def asks_twice(context: ToolContext, _: Any) -> ToolResult:
    link = client(context)
    if link.state == "":
        asked = elicitation("Step 1: What is your name?", name=TEXT)
        await link.ask({"step1": asked}, state="one")
    asked = elicitation("Step 2: What is your favorite color?", color=TEXT)
    said = await link.ask({"step2": asked}, state="two")
    return ToolResult(f"done: {said['step2']['content']['color']}")


async def asks_what_it_may(context: ToolContext, _: Any) -> ToolResult:
    link = client(context)
    asked = (
        {"sampled": sampling("Say something")}
        if "sampling" in link.capabilities
        else {}
    )
    if "elicitation" in link.capabilities:
        asked |= NAME
    return ToolResult(json.dumps(await link.ask(asked)))


class Suite(McpSource):
    """What the suite looks for."""

    name = "suite"

    def __init__(self) -> None:
        self.changed: Callable[[], object] = lambda: None
        self.more = 0
        self.prompted = 0

    async def start(self, host: Host, changed: Callable[[], object]) -> None:
        self.changed = changed

    def snapshot(self) -> Iterable[ToolSpec]:
        for name, (call, schema) in self._tools().items():
            yield ToolSpec(name, f"The suite's {name}", schema, Effect.READ, call)

    def _tools(self) -> Mapping[str, tuple[Call, JsonObject]]:
        simple = "This is a simple text response for testing."
        embedded = "This is an embedded resource content."
        uri = "test://embedded-resource"
        mixed = json.dumps({"test": "data", "value": 123})
        plain: dict[str, Call] = {
            "test_simple_text": says(text=simple),
            "test_image_content": says(Image("image/png", PNG)),
            "test_audio_content": says(Audio("audio/wav", WAV)),
            "test_embedded_resource": says(file_of(uri, "text/plain", embedded)),
            "test_multiple_content_types": says(
                Text("Multiple content types test:"),
                Image("image/png", PNG),
                file_of("test://mixed-content-resource", "application/json", mixed),
            ),
            "test_tool_with_logging": logs,
            "test_logging_tool": logs,
            "test_error_handling": fails,
            "test_tool_with_progress": progresses,
            "test_elicitation_sep1034_defaults": asks(DEFAULTS),
            "test_elicitation_sep1330_enums": asks(ENUMS),
            "test_streaming_elicitation": greets,
            "test_missing_capability": wonders,
            "test_trigger_tool_change": self._more_tools,
            "test_trigger_prompt_change": self._more_prompts,
            "test_input_required_result_elicitation": greets,
            "test_input_required_result_sampling": wonders,
            "test_input_required_result_list_roots": roots,
            "test_input_required_result_request_state": keeps_state,
            "test_input_required_result_multiple_inputs": asks_much,
            "test_input_required_result_multi_round": asks_twice,
            "test_input_required_result_tampered_state": keeps_state,
            "test_input_required_result_capabilities": asks_what_it_may,
            **{f"test_more_{i}": says(text="more") for i in range(self.more)},
        }
        return {
            **{name: (call, EMPTY) for name, call in plain.items()},
            "test_sampling": (samples, text_schema("prompt")),
            "test_elicitation": (elicits, text_schema("message")),
            "json_schema_2020_12_tool": (says(text="fine"), RICH),
            "test_header": (
                says(text="fine"),
                text_schema("region", **{"x-mcp-header": "Region"}),
            ),
        }

    async def _more_tools(self, _: ToolContext, __: Any) -> ToolResult:
        self.more += 1
        self.changed()
        return ToolResult("changed")

    async def _more_prompts(self, _: ToolContext, __: Any) -> ToolResult:
        self.prompted += 1
        return ToolResult("changed")

    def resources(self, visit: Visit) -> Iterable[Resource]:
        yield Resource("test://static-text", "static-text", "Words")
        yield Resource("test://static-binary", "static-binary", "Bytes", "image/png")
        yield Resource("test://watched-resource", "watched", "What changes")
        template = "test://template/{id}/data"
        yield Resource(template, "template", "Words of an id", "application/json")

    def revision(self, uri: str) -> str:
        return str(self.more) if uri == "test://watched-resource" else ""

    def prompts(self, visit: Visit) -> Iterable[Prompt]:
        yield Prompt("test_simple_prompt", "Simple")
        both = (PromptArgument("arg1", "", True), PromptArgument("arg2", "", True))
        yield Prompt("test_prompt_with_arguments", "With arguments", both)
        uri = (PromptArgument("resourceUri", "", True),)
        yield Prompt("test_prompt_with_embedded_resource", "With a resource", uri)
        yield Prompt("test_prompt_with_image", "With an image")
        yield Prompt("test_input_required_result_prompt", "Asks")
        for number in range(self.prompted):
            yield Prompt(f"test_more_{number}", "More")

    async def read(self, visit: Visit, uri: str) -> Sequence[Contents] | None:
        match uri.removeprefix("test://").split("/"):
            case ["static-text" | "watched-resource"]:
                text = "This is the content of the static text resource."
                return [Contents(uri, text=text)]
            case ["static-binary"]:
                return [Contents(uri, "image/png", blob=PNG)]
            case ["template", number, "data"]:
                data = f"Data for ID: {number}"
                told = {"id": number, "templateTest": True, "data": data}
                return [Contents(uri, "application/json", json.dumps(told))]
        return None

    async def prompt(
        self, visit: Visit, name: str, arguments: Mapping[str, str]
    ) -> Sequence[PromptMessage] | None:
        match name:
            case "test_simple_prompt":
                return [user("This is a simple prompt for testing.")]
            case "test_prompt_with_arguments":
                told = ", ".join(f"{k}='{v}'" for k, v in arguments.items())
                return [user(f"Prompt with arguments: {told}")]
            case "test_prompt_with_embedded_resource":
                text = "Embedded resource content for testing."
                held = file_of(arguments["resourceUri"], "text/plain", text)
                ask = user("Please process the embedded resource above.")
                return [PromptMessage("user", held), ask]
            case "test_prompt_with_image":
                image = PromptMessage("user", Image("image/png", PNG))
                return [image, user("Please analyze the image above.")]
            case "test_input_required_result_prompt":
                asked = elicitation("What context should it use?", context=TEXT)
                said = await visit.link.ask({"user_context": asked})
                return [user(said["user_context"]["content"]["context"])]
        return None

    async def complete(
        self,
        visit: Visit,
        reference: JsonObject,
        argument: str,
        begun: str,
    ) -> Sequence[str] | None:
        if reference.get("name") != "test_prompt_with_arguments":
            return None
        cities = ("paris", "park", "party", "testing")
        return [city for city in cities if city.startswith(begun)]


def user(text: str) -> PromptMessage:
    return PromptMessage("user", Text(text))


class Plugin:
    """The plugin."""

    __name__ = "suite_fixture"

    @hookimpl
    def register_tool_source(self) -> Iterable[ToolSource]:
        yield Suite()
