"""What a plugin offers through a hook works in a running daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import httpx
from agenthost import (
    ALLOW,
    AgentSpawned,
    Answer,
    Backend,
    Call,
    Completion,
    Context,
    Delta,
    Deny,
    Effect,
    EgressBackend,
    EgressPolicy,
    Event,
    Finish,
    Guard,
    GuardPoint,
    Guards,
    Message,
    ModelCall,
    ModelFacts,
    ProviderFacts,
    ProviderSpec,
    RequestCase,
    Role,
    RouteGroup,
    SchemaSpec,
    SecuritySystem,
    ServiceSpec,
    Text,
    ToolResult,
    ToolSource,
    ToolSpec,
    Usage,
    Verdict,
    as_json,
    hookimpl,
)
from agenthost.testing import Daemons
from pydantic import BaseModel
from quart import Quart
from sqlalchemy import Column, Connection, MetaData, String, Table, insert, select

SECONDS = 5.0


def plugin(hook: Callable[..., Any]) -> SimpleNamespace:
    """A plugin that implements one hook."""
    return SimpleNamespace(__name__="made", **{hook.__name__: hookimpl(hook)})


async def test_register_routes_is_given_the_app_and_its_routes_are_served(
    daemons: Daemons,
) -> None:
    routes = RouteGroup("greetings")
    apps: list[Quart] = []

    @routes.get("/api/greeting", scope="system:read")
    async def greeting(call: Call) -> Answer:
        return {"greeting": f"hello {call.principal.kind}"}

    def register_routes(app: Quart) -> list[RouteGroup]:
        apps.append(app)
        return [routes]

    daemon = await daemons.start(plugins=[plugin(register_routes)])
    answer = await daemon.http.get("/api/greeting")
    assert answer.json() == {"greeting": "hello loopback"}
    assert apps == [daemon.daemon.front.app]


class Shout(BaseModel):
    """Arguments of the tool."""

    text: str


async def shout(context: Context, call: Shout) -> ToolResult:
    return ToolResult(call.text.upper())


async def test_register_tool_lets_a_model_call_the_tool(daemons: Daemons) -> None:
    def register_tool() -> list[ToolSpec]:
        return [ToolSpec("shout", "Say it louder.", Shout, Effect.READ, shout)]

    daemon = await daemons.start(plugins=[plugin(register_tool)])
    agent = await daemon.agent(tools=["shout"])
    daemon.model.calls("shout", text="hello")
    daemon.model.says("done")
    assert await agent.ask("shout hello") == "done"
    asked, told = daemon.model.requests
    assert [tool.name for tool in asked.tools] == ["shout"]
    assert "HELLO" in str(told.messages[-1])


async def test_register_tool_source_offers_tools_for_as_long_as_it_has_them(
    daemons: Daemons,
) -> None:
    class Loud(ToolSource):
        name = "loud"

        def snapshot(self) -> list[ToolSpec]:
            return [ToolSpec("shout", "Say it louder.", Shout, Effect.READ, shout)]

    def register_tool_source() -> list[ToolSource]:
        return [Loud()]

    daemon = await daemons.start(plugins=[plugin(register_tool_source)])
    agent = await daemon.agent(tools=["shout"])
    daemon.model.calls("shout", text="hello")
    await agent.ask("shout hello")
    assert "HELLO" in str(daemon.model.requests[-1].messages[-1])


class Parrot:
    """A model that says what it is told, twice."""

    name = "parrot"

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        said = call.request.messages[-1].text
        answer = Message(Role.ASSISTANT, (Text(f"{said} {said}"),))
        yield Completion(answer, Finish.STOP, Usage(1, 2))


async def test_register_provider_lets_an_agent_use_its_model(daemons: Daemons) -> None:
    model = ModelFacts("macaw", "parrot", "macaw", "Macaw")
    facts = ProviderFacts("parrot", "Parrot", "", key_required=False, models=(model,))

    def register_provider() -> list[ProviderSpec]:
        return [ProviderSpec(facts, Parrot())]

    daemon = await daemons.start(plugins=[plugin(register_provider)])
    agent = await daemon.agent(extra='[model]\nprovider = "parrot"\nmodel = "macaw"\n')
    assert await agent.ask("hello") == "hello hello"
    assert daemon.model.requests == []


async def test_on_event_hears_of_a_new_agent(daemons: Daemons) -> None:
    loop, heard = asyncio.get_running_loop(), asyncio.Queue[Event]()

    def on_event(event: AgentSpawned) -> None:
        loop.call_soon_threadsafe(heard.put_nowait, event)

    daemon = await daemons.start(plugins=[plugin(on_event)])
    agent = await daemon.agent("ada")
    async with asyncio.timeout(SECONDS):
        event = await heard.get()
    assert as_json(event) == {
        "kind": "agent_spawned",
        "id": event.id,
        "subject": agent.id,
        "at": event.at,
        "by": "loopback:loopback",
        "source": "",
        "depth": 0,
        "data": {"name": "ada"},
    }


async def test_security_system_is_asked_at_the_guard_points_it_fills(
    daemons: Daemons,
) -> None:
    def no_lists(case: RequestCase) -> Verdict:
        return Deny("lists are closed") if case.path == "/api/agents" else ALLOW

    def security_system() -> SecuritySystem:
        return SecuritySystem("no_lists", {Guard.REQUEST: no_lists}, lambda: None)

    daemon = await daemons.start(plugins=[plugin(security_system)])
    refused = await daemon.http.get("/api/agents")
    assert refused.status_code == 403
    assert refused.json() == {"error": "lists are closed", "code": "blocked"}
    assert (await daemon.http.get("/api/health")).status_code == 200


@dataclass(frozen=True, slots=True)
class GreetCase:
    """A greeting about to be said."""

    name: str
    context: Context | None = None


async def test_register_guard_point_lets_others_guard_what_the_plugin_does(
    daemons: Daemons,
) -> None:
    point = GuardPoint("greet", GreetCase, "the greeting")
    routes = RouteGroup("greetings")

    @routes.get("/api/greetings/<name>", scope="system:read")
    async def greeting(call: Call, name: str) -> Answer:
        case = call.host.guards.check(point, GreetCase(name, Context(call.principal)))
        return {"greeting": f"hello {case.name}"}

    def register_guard_point() -> list[GuardPoint[GreetCase]]:
        return [point]

    def register_routes() -> list[RouteGroup]:
        return [routes]

    def not_bob(case: GreetCase) -> Verdict:
        return Deny("bob wants to be left alone") if case.name == "bob" else ALLOW

    def security_system() -> SecuritySystem:
        return SecuritySystem("calm", {"greet": not_bob}, lambda: None)

    greeter = plugin(register_guard_point)
    greeter.register_routes = hookimpl(register_routes)
    calm = plugin(security_system)
    calm.__name__ = "calm"
    daemon = await daemons.start(plugins=[greeter, calm])
    assert (await daemon.http.get("/api/greetings/ada")).status_code == 200
    refused = await daemon.http.get("/api/greetings/bob")
    assert (refused.status_code, refused.json()["code"]) == (403, "blocked")
    # Once the plugin has failed, it can do no more of what it does.
    daemon.daemon.plugins.fail("plugin:made", "its service ran away")
    refused = await daemon.http.get("/api/greetings/ada")
    assert refused.status_code == 403
    assert "no healthy plugin offers the guard point greet" in refused.json()["error"]


class Silence:
    """An egress that answers everything itself."""

    def __init__(self, guards: Guards) -> None:
        answer = httpx.MockTransport(lambda _: httpx.Response(204))
        self._client = httpx.AsyncClient(transport=answer)
        self.closed = False

    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        return self._client

    async def warm_up(self) -> None:
        return

    async def close(self) -> None:
        await self._client.aclose()
        self.closed = True


async def test_register_backend_serves_a_port_until_the_daemon_stops(
    daemons: Daemons,
) -> None:
    def register_backend() -> list[Backend]:
        return [EgressBackend("silence", cast("Any", Silence))]

    daemon = await daemons.start(
        plugins=[plugin(register_backend)],
        environ={"AGENTHOST_PLUGINS__DISABLE": "plugin:egress"},
    )
    egress = daemon.daemon.egress
    assert isinstance(egress, Silence)
    answer = await egress.client(EgressPolicy("test")).get("http://nowhere.example")
    assert answer.status_code == 204
    await daemon.daemon.stop()
    assert egress.closed


async def test_register_service_runs_as_long_as_the_daemon(daemons: Daemons) -> None:
    seen: list[str] = []

    async def start(daemon: object) -> None:
        seen.append("started")

    async def stop(daemon: object) -> None:
        seen.append("stopped")

    def register_service() -> list[ServiceSpec]:
        return [ServiceSpec("watcher", start, stop)]

    daemon = await daemons.start(plugins=[plugin(register_service)])
    assert seen == ["started"]
    await daemon.daemon.stop()
    assert seen == ["started", "stopped"]


async def test_register_schema_gives_the_plugin_its_tables(daemons: Daemons) -> None:
    metadata = MetaData()
    greetings = Table("made_greetings", metadata, Column("text", String))

    def register_schema() -> SchemaSpec:
        return SchemaSpec("made", metadata)

    def greet(connection: Connection) -> None:
        connection.execute(insert(greetings).values(text="hello"))

    daemon = await daemons.start(plugins=[plugin(register_schema)])
    await daemon.daemon.store.write(greet)
    (row,) = await daemon.daemon.store.read(select(greetings.c.text))
    assert row["text"] == "hello"
