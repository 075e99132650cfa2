"""What plugins offer, compiled: look-ups, collisions, schemas, self-tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import (
    ALLOW,
    Answer,
    Blocked,
    Call,
    ChannelSpec,
    Deny,
    DialectSpec,
    Effect,
    EmbedderSpec,
    FilesBackend,
    Guard,
    ManifestTable,
    Mountable,
    ProviderFacts,
    ProviderSpec,
    RouteGroup,
    SchemaSpec,
    SecuritySystem,
    ServiceSpec,
    ToolResult,
    ToolSpec,
)
from agenthost.plugins.hooks import Hooks
from agenthost.plugins.loader import Plugins
from agenthost.plugins.marks import hookspec
from agenthost.plugins.registry import Registry, compile_registry
from agenthost.plugins.validation import OFFERS, Offers, hook_names
from pydantic import BaseModel, Field
from sqlalchemy import MetaData

from .entries import OTHER, FakeEntry, config, entry, module

CASE: Any = None


class Arguments(BaseModel):
    """What the tool takes."""

    path: str = Field(description="a path")


class Keys(BaseModel):
    """What is read of manifests."""

    depth: int = 1


async def call_it(context: object, call: object) -> ToolResult:
    return ToolResult("done")


def tool(name: str, *aliases: str, model: type[BaseModel] = Arguments) -> ToolSpec:
    return ToolSpec(name, "A tool.", model, Effect.READ, call_it, aliases=aliases)


def tools(*specs: ToolSpec) -> Any:
    return module(register_tool=lambda: specs)


def provider(slug: str) -> ProviderSpec:
    return ProviderSpec(ProviderFacts(slug, slug, "https://x.example"), dialect=ANY)


ANY: Any = SimpleNamespace(name="any")


class Front:
    """A front that counts how often its application is asked for."""

    asked = 0

    @property
    def app(self) -> object:
        self.asked += 1
        return self


async def compiled(*entries: FakeEntry, front: Any = None) -> tuple[Plugins, Registry]:
    plugins = Plugins(entries)
    await plugins.load(config(enable=["*"]))

    async def opened(*_: object) -> Any:
        return front

    return plugins, await compile_registry(plugins, opened, {})


def failures(plugins: Plugins) -> dict[str, str | None]:
    return {s.key: s.reason for s in plugins.states() if s.status == "failed"}


def mounted(registry: Registry) -> list[Any]:
    offers = registry.offered(Mountable)  # type: ignore[type-abstract]  # reason: two unlike classes are mounted
    return [group for _, group in offers]


def names_of(registry: Registry) -> list[str]:
    return [spec.name for _, spec in registry.offered(ToolSpec)]


async def test_what_is_offered_is_found_by_its_type_with_its_plugin() -> None:
    spec = tool("kv_set", "memory_store")
    _, registry = await compiled(entry("tool:a", tools(spec)))
    assert registry.offered(ToolSpec) == (("tool:a", spec),)
    assert registry.offered(ProviderSpec) == ()
    assert registry.offered(int) == ()
    assert spec.names == ("kv_set", "memory_store")


async def test_a_plugin_that_fails_at_a_hook_is_asked_for_no_other() -> None:
    threads: list[str] = []

    def fails() -> Any:
        raise ValueError("no")

    def told() -> Any:
        threads.append(threading.current_thread().name)
        return ()

    plugins, registry = await compiled(
        entry("tool:a", module(register_tool=fails, register_service=told)),
        entry("tool:b", tools(tool("b"))),
        entry("tool:c", module(register_tool=told, register_service=told)),
    )
    assert failures(plugins) == {"tool:a": "ValueError: no"}
    assert names_of(registry) == ["b"]
    # What is left of one is asked in one thread: to begin many takes longer than all.
    assert threads == ["tool:a hooks"] * 2


@dataclass(frozen=True)
class Greeting:
    """What a hook of the future offers."""

    name: str


class FutureHooks:
    """The hooks of the future."""

    @hookspec
    def register_greeting(self) -> list[Greeting]:
        """Offer greetings."""
        raise NotImplementedError


async def test_a_new_hook_is_a_method_and_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = Offers(Greeting, lambda offer: [f"greeting {offer.name}"])
    method = FutureHooks.register_greeting
    monkeypatch.setattr(Hooks, "register_greeting", method, raising=False)
    monkeypatch.setitem(cast("Any", OFFERS), "register_greeting", row)
    first = module(register_greeting=lambda: [Greeting("hello")])
    second = module(register_greeting=lambda: [Greeting("hello")])
    third = module(register_greeting=lambda: ["hello"])
    plugins, registry = await compiled(
        entry("plugin:a", first), entry("plugin:b", second), entry("plugin:c", third)
    )
    assert registry.offered(Greeting) == (("plugin:a", Greeting("hello")),)
    assert failures(plugins) == {
        "plugin:b": "plugin:b offers greeting hello, which plugin:a has taken",
        "plugin:c": "register_greeting offers str; it must offer Greeting",
    }


def test_no_two_rows_of_the_hook_table_offer_one_type() -> None:
    types = [row.type for row in OFFERS.values()]
    assert len(set(types)) == len(types)
    assert OFFERS.keys() == set(hook_names()) - {"on_event"}


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (tools(tool("x")), tools(tool("x")), "tool x"),
        (tools(tool("x")), tools(tool("y", "x")), "tool x"),
        (tools(tool("y", "x")), tools(tool("x")), "tool x"),
        (
            module(register_provider=lambda: [provider("p")]),
            module(register_provider=lambda: [provider("p")]),
            "provider p",
        ),
        (
            module(register_dialect=lambda: [DialectSpec("d", lambda _: ANY)]),
            module(register_dialect=lambda: [DialectSpec("d", lambda _: ANY)]),
            "dialect d",
        ),
        (
            module(register_embedder=lambda: [EmbedderSpec("d", lambda _: ANY)]),
            module(register_embedder=lambda: [EmbedderSpec("d", lambda _: ANY)]),
            "embedder d",
        ),
        (
            module(register_manifest=lambda: [ManifestTable("t", Keys)]),
            module(register_manifest=lambda: [ManifestTable("t", Keys)]),
            "manifest t.depth",
        ),
    ],
)
async def test_a_name_taken_twice_fails_the_second_naming_both(
    first: object, second: object, name: str
) -> None:
    plugins, _ = await compiled(entry("tool:a", second, OTHER), entry("tool:z", first))
    assert failures(plugins) == {
        "tool:a": f"tool:a offers {name}, which tool:z has taken"
    }


async def test_a_plugin_that_collides_offers_nothing_at_all() -> None:
    _, registry = await compiled(
        entry("tool:a", tools(tool("x"))), entry("tool:b", tools(tool("x"), tool("y")))
    )
    assert names_of(registry) == ["x"]


async def test_a_name_offered_twice_by_one_plugin_fails_it() -> None:
    plugins, _ = await compiled(entry("tool:a", tools(tool("x"), tool("x"))))
    assert failures(plugins) == {"tool:a": "tool:a offers tool x twice"}


async def serve(call: Call) -> Answer:
    return {}


def routes(method: str, path: str) -> Callable[[Any], list[RouteGroup]]:
    def hook(app: Any) -> list[RouteGroup]:
        group = RouteGroup("g")
        getattr(group, method)(path, scope="x:read")(serve)
        return [group]

    return hook


async def test_a_path_taken_twice_fails_the_second_whatever_its_parameter() -> None:
    plugins, registry = await compiled(
        entry("plugin:a", module(register_routes=routes("get", "/x/<uuid:id>"))),
        entry("plugin:b", module(register_routes=routes("get", "/x/<name>"))),
        entry("plugin:c", module(register_routes=routes("post", "/x/<name>"))),
        front=Front(),
    )
    assert list(failures(plugins)) == ["plugin:b"]
    assert len(mounted(registry)) == 2


async def test_the_application_is_asked_for_only_where_a_plugin_takes_it() -> None:
    given: list[object] = []
    without = entry("plugin:a", module(register_routes=lambda: [RouteGroup("a")]))

    def takes_it(app: object) -> list[RouteGroup]:
        given.append(app)
        return [RouteGroup("b")]

    front = Front()
    _, registry = await compiled(without, front=front)
    assert (len(mounted(registry)), front.asked) == (1, 0)
    taking = entry("plugin:b", module(register_routes=takes_it))
    _, registry = await compiled(without, taking, front=front)
    assert (len(mounted(registry)), front.asked) == (2, 1)
    assert given == [front]


async def test_schemas_and_services_are_collected() -> None:
    async def nothing(daemon: object) -> None:
        return None

    both = module(
        register_schema=lambda: SchemaSpec("notes", MetaData()),
        register_service=lambda: [ServiceSpec("watch", nothing, nothing)],
    )
    _, registry = await compiled(entry("plugin:a", both))
    assert [s.name for _, s in registry.offered(SchemaSpec)] == ["notes"]
    services = registry.offered(ServiceSpec)
    assert [(key, s.name) for key, s in services] == [("plugin:a", "watch")]


async def test_a_plugin_may_have_several_schemas_in_a_tuple() -> None:
    notes, tags = SchemaSpec("notes", MetaData()), SchemaSpec("tags", MetaData())
    plugins, registry = await compiled(
        entry("plugin:a", module(register_schema=lambda: (notes, tags))),
        entry("plugin:b", module(register_schema=lambda: ())),
        entry("plugin:c", module(register_schema=lambda: None)),
        entry("plugin:d", module(register_schema=lambda: (SchemaSpec, "x"))),
    )
    assert registry.offered(SchemaSpec) == (("plugin:a", notes), ("plugin:a", tags))
    assert failures(plugins) == {
        "plugin:d": "register_schema offers type; it must offer SchemaSpec"
    }


PATHS = "path_traversal_prevention"


def system(
    name: str, test: Callable[[], Any], guard: Callable[[Any], Any] = lambda _: ALLOW
) -> Any:
    made = SecuritySystem(name, {Guard.PATH: guard}, test)
    return module(security_system=lambda: made)


def fails() -> None:
    raise AssertionError("planted link was followed")


async def asynchronous() -> None:
    return None


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (fails, "AssertionError: planted link was followed"),
        (asynchronous, "self_test is async; it must be a plain function"),
    ],
)
async def test_guards_of_a_failed_self_test_are_not_used(
    test: Callable[[], Any], reason: str
) -> None:
    plugins, registry = await compiled(entry("security:s", system("s", test)))
    (state,) = registry.security.states()
    assert (state.active, state.reason) == (False, reason)
    assert failures(plugins) == {"security:s": reason}
    with pytest.raises(Blocked, match="the security system s is not active"):
        registry.security.guards.check(Guard.PATH, CASE)


async def test_guards_of_a_healthy_system_decide() -> None:
    refuse = system(PATHS, lambda: None, lambda _: Deny("no"))
    _, registry = await compiled(entry("security:s", refuse))
    assert registry.security.states()[0].active
    with pytest.raises(Blocked, match="no"):
        registry.security.guards.check(Guard.PATH, CASE)


async def test_a_self_test_is_run_again_and_off_the_loop_until_it_fails() -> None:
    results: list[Callable[[], None]] = [lambda: None, lambda: None, fails]
    threads: list[threading.Thread] = []

    def test() -> None:
        threads.append(threading.current_thread())
        results.pop(0)()

    _, registry = await compiled(entry("security:s", system(PATHS, test)))
    assert (await registry.security.test())[0].active
    assert registry.security.guards.closed.keys() == {"url", "address", "spawn"}
    assert not (await registry.security.test())[0].active
    assert "path" in registry.security.guards.closed
    assert not (await registry.security.test())[0].active
    assert threading.main_thread() not in threads


async def test_a_self_test_that_proves_a_backend_is_given_its_opener() -> None:
    given: list[object] = []
    opener = cast("Any", object())
    proves = SecuritySystem("s", {}, given.append, proves_on=FilesBackend)
    hook = entry("security:s", lambda: module(security_system=lambda: proves))
    _, registry = await compiled(hook)
    (state,) = registry.security.states()
    assert (state.active, given) == (False, [])
    assert "no plugin serves the port files" in str(state.reason)
    files = FilesBackend("mine", opener)
    offers = entry("plugin:f", lambda: module(register_backend=lambda: [files]))
    _, registry = await compiled(hook, offers)
    assert registry.security.states()[0].active
    assert given == [opener]


async def test_a_system_is_inactive_once_its_plugin_has_failed() -> None:
    plugins, registry = await compiled(entry("security:s", system("s", lambda: None)))
    plugins.fail("security:s", "broke")
    assert not registry.security.states()[0].active


async def test_what_a_plugin_offers_is_told_by_name() -> None:
    offering = module(
        register_tool=lambda: [tool("x", "y")],
        register_manifest=lambda: [ManifestTable("", Keys)],
    )
    _, registry = await compiled(entry("tool:a", offering), entry("tool:b"))
    assert sorted(registry.names_of["tool:a"]) == ["manifest depth", "tool x", "tool y"]
    assert "tool:b" not in registry.names_of


async def test_register_channel_offers_channels_by_name_and_loads_none() -> None:
    def load() -> type:
        raise AssertionError("imported")

    first = module(register_channel=lambda: [ChannelSpec("pager", load)])
    second = module(register_channel=lambda: [ChannelSpec("pager", load)])
    plugins, registry = await compiled(
        entry("channel:a", first), entry("channel:b", second)
    )
    assert registry.offered(ChannelSpec) == (("channel:a", ChannelSpec("pager", load)),)
    assert "channel pager" in str(failures(plugins)["channel:b"])
