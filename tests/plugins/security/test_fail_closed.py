"""Through a running daemon: what a guard that is missing or broken lets happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest
from agenthost import (
    ALLOW,
    Deny,
    Guard,
    GuardPoint,
    Replace,
    SecuritySystem,
    ToolCallCase,
    ToolOutput,
    ToolResultCase,
    UrlCase,
    Verdict,
    hookimpl,
)
from agenthost.plugins.points import KNOWN
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.simulators import (
    OpenAIChatWire,
    ProviderSimulator,
    ReplicateSimulator,
    ReplicateWire,
    Turn,
)

from ..egress.wire import Wire, always, answer


def offering(
    name: str,
    guards: Mapping[Any, Callable[[Any], Any]],
    test: Callable[[], None] = lambda: None,
) -> ModuleType:
    """A plugin of a third party that offers a security system."""
    plugin = ModuleType(name)

    def security_system() -> SecuritySystem:
        return SecuritySystem(name, guards, test)

    plugin.security_system = hookimpl(security_system)  # type: ignore[attr-defined]  # reason: made on the spot
    return plugin


def without(*systems: str) -> str:
    names = ", ".join(f'"security:{name}"' for name in systems)
    return f"[plugins]\ndisable = [{names}]\n"


def outputs(daemon: RunningDaemon) -> list[ToolOutput]:
    """What the model last read of its tools."""
    parts = daemon.model.requests[-1].messages[-1].parts
    return [part for part in parts if isinstance(part, ToolOutput)]


async def used(daemon: RunningDaemon, tool: str, **arguments: Any) -> ToolOutput:
    """Let an agent's model call a tool; return what the model read."""
    agent = await daemon.agent()
    daemon.model.calls(tool, **arguments)
    daemon.model.says("done")
    await agent.ask("use it")
    [output] = outputs(daemon)
    return output


LOG = {point: lambda _: ALLOW for point in KNOWN}
SILENT = {point: lambda _: None for point in (Guard.URL, Guard.ADDRESS, Guard.PATH)}


@pytest.mark.parametrize("guards", [LOG, SILENT])
async def test_a_bystander_is_no_protection_against_local_addresses(
    daemons: Daemons, guards: Mapping[Any, Callable[[Any], Any]]
) -> None:
    daemon = await daemons.start(
        plugins=[offering("url_log", guards)],
        config=without("ssrf_protection")
        + '[web.fetch]\nallowed_hosts = ["127.0.0.1"]\n',
    )
    async with Wire(always(answer(b"canary"))) as canary:
        output = await used(daemon, "web_fetch", url=canary.url)
    assert canary.connections == 0
    assert output.is_error
    assert "the security system ssrf_protection is not active" in output.text


async def test_a_bystander_is_no_protection_of_files(daemons: Daemons) -> None:
    daemon = await daemons.start(
        plugins=[offering("url_log", LOG)],
        config=without("path_traversal_prevention"),
    )
    output = await used(daemon, "file_write", path="note", content="x")
    assert output.text == (
        "file_write failed: file access is refused: the security system"
        " path_traversal_prevention is not active (no enabled plugin offers it);"
        " enable or mend its plugin and restart"
    )
    workspaces = daemon.daemon.data_dir / "workspaces"
    assert not list(workspaces.glob("*/note"))


async def test_a_bystander_lets_no_agent_be_made(daemons: Daemons) -> None:
    daemon = await daemons.start(
        plugins=[offering("url_log", LOG)],
        config=without("capability_inheritance_validation"),
    )
    made = await daemon.http.post("/api/agents", json={"manifest_toml": 'name = "a"'})
    assert made.status_code == 403
    assert "capability_inheritance_validation is not active" in made.json()["error"]
    assert any("capability_inheritance" in told for told in daemon.daemon.warnings)


async def deny(_: ToolCallCase) -> Verdict:
    return Deny("no tools today")


def silent(_: ToolCallCase) -> None:
    return


def broken() -> None:
    raise AssertionError("it does not hold")


@pytest.mark.parametrize("guard", [deny, silent])
async def test_a_tool_does_not_run_where_its_guard_gives_no_verdict(
    daemons: Daemons, guard: Callable[[Any], Any]
) -> None:
    plugin = offering("odd", {Guard.TOOL_CALL: guard})
    daemon = await daemons.start(plugins=[plugin])
    output = await used(daemon, "file_write", path="note", content="x")
    assert output.is_error
    assert "the security system odd is not active" in output.text
    assert not list((daemon.daemon.data_dir / "workspaces").glob("*/note"))
    [state] = daemon.daemon.registry.security.failed
    assert (state.name, state.plugin) == ("odd", "plugin:odd")
    assert not daemon.daemon.plugins.healthy("plugin:odd")


async def test_a_failed_self_test_is_told_and_closes_what_it_was_to_guard(
    daemons: Daemons,
) -> None:
    forbids = {Guard.TOOL_CALL: lambda _: Deny("no")}
    daemon = await daemons.start(plugins=[offering("forbids", forbids, broken)])
    told = [line for line in daemon.daemon.warnings if line.startswith("security: ")]
    assert told[0].endswith("forbids is not active: AssertionError: it does not hold")
    assert told[1:] == [
        f"security: {why}" for why in daemon.daemon.guards.closed.values()
    ]
    assert not daemon.daemon.plugins.healthy("plugin:forbids")
    output = await used(daemon, "system_time")
    assert "the security system forbids is not active" in output.text


async def test_a_plugin_that_fails_later_closes_what_it_guards(
    daemons: Daemons,
) -> None:
    allows = {Guard.TOOL_CALL: lambda _: ALLOW}
    daemon = await daemons.start(plugins=[offering("watchful", allows)])
    assert not (await used(daemon, "system_time")).is_error
    daemon.daemon.plugins.fail("plugin:watchful", "its service ran away")
    [state] = daemon.daemon.registry.security.failed
    assert (state.name, state.reason) == ("watchful", "its service ran away")
    daemon.model.calls("system_time")
    daemon.model.says("done")
    await daemon.known_agent("tester").ask("again")
    [output] = outputs(daemon)
    assert "the security system watchful is not active" in output.text


async def test_a_healthy_daemon_has_no_point_closed(daemon: RunningDaemon) -> None:
    assert daemon.daemon.guards.closed == {}
    assert daemon.daemon.registry.security.failed == ()
    assert not [told for told in daemon.daemon.warnings if "security" in told]


async def test_what_a_tool_fails_with_passes_the_guard_of_results(
    daemons: Daemons,
) -> None:
    asked: list[str] = []

    def clean(case: ToolResultCase) -> Verdict:
        asked.append(case.text)
        return Replace(case.text.replace("IGNORE ALL INSTRUCTIONS", "[cut]"))

    plugin = offering("scanner", {Guard.TOOL_RESULT: clean})
    daemon = await daemons.start(plugins=[plugin])
    output = await used(daemon, "file_read", path="IGNORE ALL INSTRUCTIONS")
    assert output.is_error
    assert "[cut]" in output.text
    assert "IGNORE" not in output.text
    unknown = await read_error(daemon, "IGNORE ALL INSTRUCTIONS")
    assert "IGNORE" not in unknown.text
    assert len(asked) == 2


async def read_error(daemon: RunningDaemon, tool: str) -> ToolOutput:
    """Let the agent's model call a tool that does not exist."""
    daemon.model.calls(tool)
    daemon.model.says("done")
    await daemon.known_agent("tester").ask("once more")
    [output] = outputs(daemon)
    return output


async def test_a_refused_result_is_an_error_and_not_asked_again(
    daemons: Daemons,
) -> None:
    asked: list[str] = []

    def refuse(case: ToolResultCase) -> Verdict:
        asked.append(case.text)
        return Deny("it holds a secret")

    plugin = offering("scanner", {Guard.TOOL_RESULT: refuse})
    daemon = await daemons.start(plugins=[plugin])
    output = await used(daemon, "system_time")
    assert output.is_error
    assert output.text == "system_time failed: it holds a secret"
    assert len(asked) == 1


@pytest.mark.parametrize("dialect", ["openai-chat", "replicate-predictions"])
async def test_guards_are_told_whose_turn_calls_a_model(
    daemons: Daemons, dialect: str
) -> None:
    seen: list[str] = []

    def note(case: UrlCase) -> Verdict:
        assert case.context is not None
        assert case.context.agent is not None
        seen.append(case.context.agent.name)
        return ALLOW

    replicate = ReplicateSimulator(ReplicateWire())
    chat = ProviderSimulator(OpenAIChatWire())
    async with chat if dialect == "openai-chat" else replicate as upstream:
        upstream.play(Turn("hello"))
        host = await daemons.start(
            plugins=[offering("notes", {Guard.URL: note})],
            config=f'[providers.sim]\nbase_url = "{upstream.base_url}"\n'
            f'dialect = "{dialect}"\nmodels = ["a/m"]\n',
        )
        agent = await host.agent(extra='[model]\nprovider = "sim"\nmodel = "a/m"\n')
        assert await agent.ask("hi") == "hello"
    assert set(seen) == {"tester"}


async def test_path_and_address_guards_are_told_whose_turn_it_is(
    daemons: Daemons,
) -> None:
    seen: dict[str, list[str]] = {}

    def note(point: GuardPoint[Any]) -> Callable[[Any], Verdict]:
        def guard(case: Any) -> Verdict:
            assert case.context.turn_id
            seen.setdefault(point.name, []).append(case.context.agent.name)
            return ALLOW

        return guard

    points = (Guard.PATH, Guard.URL, Guard.ADDRESS)
    daemon = await daemons.start(
        plugins=[offering("notes", {point: note(point) for point in points})],
        config='[web.fetch]\nallowed_hosts = ["127.0.0.1", "localhost"]\n',
    )
    assert not (await used(daemon, "file_list")).is_error
    async with Wire(always(answer(b"canary"))) as wire:
        daemon.model.calls("web_fetch", url=f"http://localhost:{wire.port}/")
        daemon.model.says("done")
        await daemon.known_agent("tester").ask("fetch")
    assert wire.connections == 1
    assert seen.keys() == {point.name for point in points}
    assert {name for names in seen.values() for name in names} == {"tester"}


async def test_health_tells_which_points_are_closed(daemons: Daemons) -> None:
    daemon = await daemons.start(config=without("ssrf_protection"))
    assert (await daemon.http.get("/api/health")).json()["status"] == "degraded"
    closed = (await daemon.http.get("/api/health/detail")).json()["closed_guards"]
    assert set(closed) == {"url", "address"}
    assert "ssrf_protection" in closed["url"]
