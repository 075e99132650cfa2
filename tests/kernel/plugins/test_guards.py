"""Guards decide, watchers are told, and nothing but a verdict allows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from agenthost import (
    ALLOW,
    AgentHostError,
    Allow,
    Approvals,
    Ask,
    Asked,
    Blocked,
    Denied,
    Deny,
    Guard,
    Guards,
    Question,
    Replace,
    SecuritySystem,
    ToolCallCase,
    ToolResultCase,
    ToolUse,
    Verdict,
)
from agenthost.plugins.discovery import SystemState
from agenthost.plugins.guards import POINTS, GuardPoint
from agenthost.plugins.loader import Plugins
from agenthost.plugins.registry import Registry, compile_registry

from .entries import FakeEntry, config, entry, module

CONTEXT: Any = None
EFFECTS = {name for name, point in POINTS.items() if point.effects}


def said(text: str) -> ToolResultCase:
    return ToolResultCase(CONTEXT, "tool", text)


def of(
    name: str,
    guards: Mapping[Guard, Callable[[Any], Any]],
    observes: Mapping[Guard, Callable[..., Any]] | None = None,
    test: Callable[[], None] = lambda: None,
) -> SecuritySystem:
    return SecuritySystem(name, guards, test, observes=observes or {})


def planted(*systems: SecuritySystem | Callable[[], Any]) -> list[FakeEntry]:
    """A plugin of the security group for each; a function is its hook."""
    return [
        entry(f"security:{s.name}", module(security_system=offering(s)))
        if isinstance(s, SecuritySystem)
        else entry("security:silent", module(security_system=s))
        for s in systems
    ]


def offering(system: SecuritySystem) -> Callable[[], SecuritySystem]:
    return lambda: system


async def compiled(
    *entries: FakeEntry, budget: float = 10.0
) -> tuple[Plugins, Registry]:
    plugins = Plugins(entries, budget=budget)
    await plugins.load(config(enable=["*"]))

    async def no_front(*_: object) -> Any:
        return None

    return plugins, await compile_registry(plugins, no_front, {})


def refused(guards: Guards, point: Guard) -> bool:
    """Ask the point about any case."""
    case = said("text") if POINTS[point].replaceable else None
    try:
        guards.check(point, case)
    except AgentHostError:
        return True
    return False


def required(point: GuardPoint) -> list[SecuritySystem]:
    return [of(name, {point.name: lambda _: ALLOW}) for name in point.requires]


async def asynchronous(_: object) -> Verdict:
    return ALLOW


def hidden_async(case: object) -> object:
    return asynchronous(case)


class AsyncCall:
    async def __call__(self, _: object) -> Verdict:
        return ALLOW


class AsyncMethod:
    async def judge(self, _: object) -> Verdict:
        return ALLOW


def raises(error: BaseException) -> Callable[[Any], Verdict]:
    def guard(_: object) -> Verdict:
        raise error

    return guard


NO_VERDICTS: Mapping[str, Callable[[Any], Any]] = {
    "None": lambda _: None,
    "True": lambda _: True,
    "a string": lambda _: "allow",
    "the class": lambda _: Allow,
    "a coroutine": hidden_async,
    "Replace where nothing is replaced": lambda _: Replace("text"),
    "an error": raises(RuntimeError("broken")),
    "the end of the process": raises(SystemExit(1)),
    "an interrupt": raises(KeyboardInterrupt()),
    "an error nobody expects": raises(BaseException("odd")),
}


@pytest.mark.parametrize("answer", NO_VERDICTS)
async def test_what_is_no_verdict_refuses_and_fails_the_plugin(answer: str) -> None:
    guard = {Guard.TOOL_CALL: NO_VERDICTS[answer]}
    plugins, registry = await compiled(*planted(of("odd", guard)))
    guards = registry.security.guards
    assert not guards.closed.get(Guard.TOOL_CALL)
    with pytest.raises(Blocked, match="the security system odd is not active"):
        guards.check(Guard.TOOL_CALL, None)
    assert not plugins.healthy("security:odd")
    [state] = registry.security.failed
    assert state.name == "odd"
    assert "its guard of tool_call" in str(state.reason)
    with pytest.raises(Blocked, match="the tool call is refused: the security system"):
        guards.check(Guard.TOOL_CALL, None)


async def test_a_cancelled_guard_is_neither_a_verdict_nor_a_failure() -> None:
    cancels = {Guard.TOOL_CALL: raises(asyncio.CancelledError())}
    plugins, registry = await compiled(*planted(of("s", cancels)))
    with pytest.raises(asyncio.CancelledError):
        registry.security.guards.check(Guard.TOOL_CALL, None)
    assert plugins.healthy("security:s")


async def test_a_replacement_that_is_no_text_refuses_and_fails_the_plugin() -> None:
    guard = {Guard.TOOL_RESULT: lambda _: Replace(cast("str", 7))}
    plugins, registry = await compiled(*planted(of("odd", guard)))
    with pytest.raises(Blocked, match="the result is refused"):
        registry.security.guards.check(Guard.TOOL_RESULT, said("text"))
    assert not plugins.healthy("security:odd")


@pytest.mark.parametrize(
    "guard",
    [
        asynchronous,
        partial(asynchronous),
        partial(partial(asynchronous), None),
        AsyncCall(),
        partial(AsyncCall()),
        AsyncMethod().judge,
    ],
)
@pytest.mark.parametrize("kind", ["guards", "observes"])
async def test_an_async_function_at_a_point_fails_its_plugin_at_boot(
    guard: Callable[..., Any], kind: str
) -> None:
    filled = {Guard.TOOL_CALL: guard}
    made = of("s", filled) if kind == "guards" else of("s", {}, filled)
    plugins, registry = await compiled(*planted(made))
    assert not plugins.healthy("security:s")
    assert "tool_call is async" in str(registry.security.states()[0].reason)
    assert refused(registry.security.guards, Guard.TOOL_CALL) is (kind == "guards")


def test_a_guard_sees_what_those_before_it_replaced() -> None:
    redact = of("a", {Guard.TOOL_RESULT: lambda c: Replace(c.text.replace("key", "*"))})
    silent = of("b", {Guard.TOOL_RESULT: lambda _: ALLOW})
    label = of("c", {Guard.TOOL_RESULT: lambda c: Replace(f"[theirs] {c.text}")})
    guards = Guards([redact, silent, label])
    left = guards.check(Guard.TOOL_RESULT, said("the key"))
    assert left.text == "[theirs] the *"


def test_a_refusal_after_a_replacement_decides() -> None:
    seen: list[str] = []

    def refuse(case: ToolResultCase) -> Verdict:
        seen.append(case.text)
        return Deny("no", Denied)

    change = of("a", {Guard.TOOL_RESULT: lambda _: Replace("changed")})
    guards = Guards([change, of("b", {Guard.TOOL_RESULT: refuse})])
    with pytest.raises(Denied, match="no"):
        guards.check(Guard.TOOL_RESULT, said("text"))
    assert seen == ["changed"]


def test_an_unfilled_point_leaves_the_text_as_it_is() -> None:
    guards = Guards()
    assert not guards.filled(Guard.TOOL_RESULT)
    assert guards.check(Guard.TOOL_RESULT, said("text")).text == "text"


def test_a_watcher_is_told_of_the_case_and_the_verdict() -> None:
    told: list[tuple[str, Verdict]] = []

    def watch(case: ToolResultCase, verdict: Verdict) -> str:
        told.append((case.text, verdict))
        return "ignored"

    watcher = of("w", {}, {Guard.TOOL_RESULT: watch})
    guards = Guards([watcher])
    assert guards.check(Guard.TOOL_RESULT, said("one")).text == "one"
    change = of("a", {Guard.TOOL_RESULT: lambda c: Replace(c.text * 2)})
    guards.compile([watcher, change])
    assert guards.check(Guard.TOOL_RESULT, said("two")).text == "twotwo"
    guards.compile([watcher, of("a", {Guard.TOOL_RESULT: lambda _: Deny("no")})])
    with pytest.raises(Blocked):
        guards.check(Guard.TOOL_RESULT, said("three"))
    assert told == [("one", ALLOW), ("two", Replace("twotwo")), ("three", Deny("no"))]


def test_a_watcher_is_told_that_a_point_is_closed() -> None:
    told: list[Verdict] = []
    guards = Guards([of("w", {}, {Guard.URL: lambda _, verdict: told.append(verdict)})])
    assert refused(guards, Guard.URL)
    assert told == [Deny(guards.closed[Guard.URL])]


@pytest.mark.parametrize(
    "error", [RuntimeError("x"), SystemExit(1), asyncio.CancelledError(), Blocked("x")]
)
async def test_a_watcher_that_raises_decides_nothing_and_fails_its_plugin(
    error: BaseException,
) -> None:
    def watch(_: object, __: Verdict) -> None:
        raise error

    allows = of("a", {Guard.TOOL_CALL: lambda _: ALLOW})
    watches = of("w", {}, {Guard.TOOL_CALL: watch})
    plugins, registry = await compiled(*planted(allows, watches))
    registry.security.guards.check(Guard.TOOL_CALL, None)
    assert not plugins.healthy("security:w")
    assert [state.name for state in registry.security.failed] == ["w"]
    registry.security.guards.check(Guard.TOOL_CALL, None)


@pytest.mark.parametrize("point", sorted(EFFECTS))
def test_watchers_and_bystanders_fill_no_requirement(point: Guard) -> None:
    watches: dict[Guard, Callable[..., None]] = {point: lambda _, __: None}
    names = POINTS[point].requires
    guards = Guards([of(name, {}, watches) for name in names])
    assert refused(guards, point)
    guards.compile([of("bystander", {point: lambda _: ALLOW})])
    assert refused(guards, point)
    guards.compile(
        [of("bystander", {point: lambda _: ALLOW}), *required(POINTS[point])]
    )
    assert not refused(guards, point)


def test_a_refusal_names_the_system_and_the_remedy() -> None:
    assert Guards().closed[Guard.PATH] == (
        "file access is refused: the security system path_traversal_prevention is not"
        " active (no enabled plugin offers it); enable or mend its plugin and restart"
    )


def fails_its_test() -> None:
    raise AssertionError("does not hold")


def raises_in_its_hook() -> None:
    raise RuntimeError("no such file: /etc/secret")


STATES = ("absent", "active", "failed at boot", "failed its test", "failed later")


@pytest.mark.parametrize("bystander", [False, True])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("point", list(Guard))
async def test_a_point_refuses_while_a_system_that_guards_it_has_failed(
    point: Guard, state: str, bystander: bool
) -> None:
    allow = {point: lambda _: ALLOW}
    names = POINTS[point].requires or ("guardian",)
    test = fails_its_test if state == "failed its test" else lambda: None
    systems = [of(name, allow, test=test) for name in names]
    entries = [] if state == "absent" else planted(*systems)
    if state == "failed at boot":
        entries = [entry(f"security:{n}", raises_in_its_hook) for n in names]
    if bystander:
        entries += planted(of("url_log", allow))
    plugins, registry = await compiled(*entries)
    if state == "failed later":
        plugins.fail(f"security:{names[0]}", "ran away")
    wanted = {
        "absent": bool(POINTS[point].requires),
        "active": False,
        # What it guards is not known, so every effect is refused.
        "failed at boot": POINTS[point].effects,
        "failed its test": True,
        "failed later": True,
    }
    assert refused(registry.security.guards, point) is wanted[state]
    guards = registry.security.guards
    assert refused(guards, point) is (point in guards.closed)
    failed = state.startswith("failed")
    assert [s.name for s in registry.security.failed] == list(names) * failed
    if failed:
        assert any(names[0] in told for told in registry.security.warnings())


@pytest.mark.parametrize("bystander", [False, True])
async def test_a_plugin_that_says_nothing_of_what_it_guards_closes_all_effects(
    bystander: bool,
) -> None:
    systems = [
        of(name, {n: lambda _: ALLOW for n, p in POINTS.items() if name in p.requires})
        for name in {name for point in POINTS.values() for name in point.requires}
    ]
    if bystander:
        systems.append(of("url_log", {point: lambda _: ALLOW for point in EFFECTS}))
    _, registry = await compiled(*planted(*systems))
    assert registry.security.guards.closed == {}
    _, registry = await compiled(*planted(*systems, raises_in_its_hook))
    closed = registry.security.guards.closed
    assert closed.keys() == EFFECTS
    assert closed[Guard.PATH] == (
        "file access is refused: the security system silent is not active (it has"
        " failed); enable or mend its plugin and restart"
    )
    state = registry.security.failed[0]
    assert state == SystemState(
        "silent", "security:silent", False, "RuntimeError: no such file: /etc/secret"
    )


async def test_a_system_at_a_point_that_does_not_exist_closes_all_effects() -> None:
    def misspelt() -> SecuritySystem:
        return of("s", {cast("Guard", "tool_cal"): lambda _: ALLOW})

    _, registry = await compiled(*planted(misspelt))
    [state] = registry.security.failed
    assert state.reason == "s: there is no guard point 'tool_cal'"
    assert registry.security.guards.closed.keys() == EFFECTS


async def test_a_system_whose_name_was_taken_closes_what_it_guards() -> None:
    first = of("same", {Guard.MANIFEST: lambda _: ALLOW})
    second = of("same", {Guard.TOOL_CALL: lambda _: ALLOW})
    entries = [
        entry("security:a", module(security_system=lambda: first)),
        entry("security:b", module(security_system=lambda: second)),
    ]
    plugins, registry = await compiled(*entries)
    assert not plugins.healthy("security:b")
    assert not refused(registry.security.guards, Guard.MANIFEST)
    assert refused(registry.security.guards, Guard.TOOL_CALL)


@pytest.mark.parametrize("where", ["its hook", "its self-test"])
async def test_a_system_that_takes_too_long_closes_what_it_guards(where: str) -> None:
    done = threading.Event()

    def endless() -> Any:
        done.wait(30)

    allow = {Guard.TOOL_CALL: lambda _: ALLOW, Guard.PATH: lambda _: ALLOW}
    system = of("path_traversal_prevention", allow, test=endless)
    hook = endless if where == "its hook" else offering(system)
    _, registry = await compiled(*planted(hook), budget=0.05)
    done.set()
    assert "took longer than 0.05 s" in str(registry.security.failed[0].reason)
    guards = registry.security.guards
    assert refused(guards, Guard.PATH)
    # Of a hook that did not end nobody knows more than that it is an effect.
    assert refused(guards, Guard.TOOL_CALL) is (where == "its self-test")


async def test_what_a_plugin_with_a_failed_self_test_offers_is_not_used() -> None:
    from agenthost import SchemaSpec
    from sqlalchemy import MetaData

    bad = of("s", {}, test=fails_its_test)
    both = module(
        security_system=lambda: bad,
        register_schema=lambda: SchemaSpec("notes", MetaData()),
    )
    _, registry = await compiled(entry("plugin:a", both))
    assert registry.offered(SchemaSpec) == ()


def test_every_case_beyond_the_request_tells_on_whose_behalf() -> None:
    for point in POINTS.values():
        names = {field.name for field in fields(point.case)}
        assert names & {"context", "principal"} or point.name is Guard.REQUEST
        assert "text" in names or not point.replaceable


def test_the_page_about_guards_lists_the_points_as_they_are() -> None:
    page = Path(__file__).parents[3] / "docs" / "guards.md"
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    told = {name: (effect == "yes", requires) for name, _, effect, requires in rows}
    assert told == {n: (p.effects, ", ".join(p.requires)) for n, p in POINTS.items()}


def test_an_ask_is_put_where_calls_of_tools_begin_and_refuses_elsewhere() -> None:
    ask = Ask(Question("May it?"))
    case = ToolCallCase(CONTEXT, "tool", "read", {})
    told: list[Verdict] = []
    watching = {Guard.TOOL_CALL: lambda _, verdict: told.append(verdict)}
    asking = {Guard.TOOL_CALL: lambda _: ask, Guard.TOOL_RESULT: lambda _: ask}
    guards = Guards([of("cautious", asking, watching)])
    with pytest.raises(Asked) as asked:
        guards.check(Guard.TOOL_CALL, case)
    assert list(asked.value.asks) == [ask]
    assert told == [ask]
    # For who knows nothing of questions it is a refusal.
    assert isinstance(asked.value, Blocked)
    with pytest.raises(Blocked, match="has failed") as refused:
        guards.check(Guard.TOOL_RESULT, said("words"))
    assert not isinstance(refused.value, Asked)


@pytest.mark.parametrize("first", ["ask", "deny"])
def test_a_deny_makes_every_question_needless(first: str) -> None:
    case = ToolCallCase(CONTEXT, "tool", "read", {})
    systems = [
        of("ask", {Guard.TOOL_CALL: lambda _: Ask(Question("May it?"))}),
        of("deny", {Guard.TOOL_CALL: lambda _: Deny("no")}),
    ]
    if first == "deny":
        systems.reverse()
    with pytest.raises(Blocked, match=r"^no$"):
        Guards(systems).check(Guard.TOOL_CALL, case)


async def test_with_nobody_to_ask_every_question_is_refused() -> None:
    nobody, call = Approvals(), ToolUse("1", "tool", {})
    with pytest.raises(Blocked, match="enable the plugin approvals"):
        await nobody.ask(CONTEXT, call, Ask(Question("May it?")))
    assert await nobody.pending("turn") is None
    assert await nobody.cancel("agent", "stopped") == 0
