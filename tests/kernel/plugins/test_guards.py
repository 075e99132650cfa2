"""Guards decide, watchers are told, and nothing but a verdict allows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    ALLOW,
    AgentHostError,
    Allow,
    Approvals,
    Ask,
    Asked,
    Blocked,
    Context,
    Denied,
    Deny,
    Guard,
    GuardPoint,
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
from agenthost.plugins.loader import Plugins
from agenthost.plugins.points import KNOWN
from agenthost.plugins.registry import Registry, compile_registry

from .entries import FakeEntry, config, entry, module

CONTEXT: Any = None
CALL: Any = None
Point = GuardPoint[Any]
EFFECTS = {point for point in KNOWN if point.effects}
NAMES_OF_EFFECTS = {point.name for point in EFFECTS}


def said(text: str) -> ToolResultCase:
    return ToolResultCase(CONTEXT, "tool", text)


def of(
    name: str,
    guards: Mapping[Any, Callable[[Any], Any]],
    test: Callable[[], None] = lambda: None,
) -> SecuritySystem:
    return SecuritySystem(name, guards, test)


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


def refused(guards: Guards, point: Point) -> bool:
    """Ask the point about any case."""
    case = said("text") if point is Guard.TOOL_RESULT else None
    try:
        guards.check(point, case)
    except AgentHostError:
        return True
    return False


def required(point: Point) -> list[SecuritySystem]:
    return [of(name, {point: lambda _: ALLOW}) for name in point.requires]


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
    assert not guards.closed.get(Guard.TOOL_CALL.name)
    with pytest.raises(Blocked, match="the security system odd is not active"):
        guards.check(Guard.TOOL_CALL, CALL)
    assert not plugins.healthy("security:odd")
    [state] = registry.security.failed
    assert state.name == "odd"
    assert "its guard of tool_call" in str(state.reason)
    with pytest.raises(Blocked, match="the tool call is refused: the security system"):
        guards.check(Guard.TOOL_CALL, CALL)


async def test_a_cancelled_guard_is_neither_a_verdict_nor_a_failure() -> None:
    cancels = {Guard.TOOL_CALL: raises(asyncio.CancelledError())}
    plugins, registry = await compiled(*planted(of("s", cancels)))
    with pytest.raises(asyncio.CancelledError):
        registry.security.guards.check(Guard.TOOL_CALL, CALL)
    assert plugins.healthy("security:s")


async def test_a_replacement_that_is_no_text_refuses_and_fails_the_plugin() -> None:
    guard = {Guard.TOOL_RESULT: lambda _: Replace(7)}
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
async def test_an_async_function_at_a_point_fails_its_plugin_at_boot(
    guard: Callable[..., Any],
) -> None:
    plugins, registry = await compiled(*planted(of("s", {Guard.TOOL_CALL: guard})))
    assert not plugins.healthy("security:s")
    assert "tool_call is async" in str(registry.security.states()[0].reason)
    assert refused(registry.security.guards, Guard.TOOL_CALL)


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


Told = list[tuple[str, str, Verdict, str]]


def listening(guards: Guards) -> Told:
    """Note what the guards tell."""
    told: Told = []

    def note(point: str, case: Any, verdict: Verdict, system: str) -> None:
        told.append((point, getattr(case, "text", ""), verdict, system))

    guards.on_verdict = note
    return told


def test_who_listens_is_told_of_the_case_the_verdict_and_whose_it_is() -> None:
    guards = Guards()
    told = listening(guards)
    change = of("a", {Guard.TOOL_RESULT: lambda c: Replace(c.text * 2)})
    silent = of("b", {Guard.TOOL_RESULT: lambda _: ALLOW})
    guards.compile([change, silent])
    assert guards.check(Guard.TOOL_RESULT, said("two")).text == "twotwo"
    guards.compile([silent, of("c", {Guard.TOOL_RESULT: lambda _: Deny("no")})])
    with pytest.raises(Blocked):
        guards.check(Guard.TOOL_RESULT, said("three"))
    guards.compile([silent])
    guards.check(Guard.TOOL_RESULT, said("four"))
    assert told == [
        ("tool_result", "two", Replace("twotwo"), "a"),
        ("tool_result", "three", Deny("no"), "c"),
        ("tool_result", "four", ALLOW, ""),
    ]


def test_who_listens_is_told_that_a_point_is_closed() -> None:
    guards = Guards()
    told = listening(guards)
    assert refused(guards, Guard.URL)
    assert told == [("url", "", Deny(guards.closed["url"]), "")]


def test_a_case_is_worth_building_for_who_guards_or_listens() -> None:
    guards = Guards()
    assert not guards.filled(Guard.TOOL_CALL)
    listening(guards)
    assert guards.filled(Guard.TOOL_CALL)
    guards.on_verdict = None
    guards.compile([of("a", {Guard.TOOL_CALL: lambda _: ALLOW})])
    assert guards.filled(Guard.TOOL_CALL)


@pytest.mark.parametrize("point", sorted(EFFECTS, key=str), ids=str)
def test_bystanders_fill_no_requirement(point: Point) -> None:
    guards = Guards([of(name, {}) for name in point.requires])
    assert refused(guards, point)
    guards.compile([of("bystander", {point: lambda _: ALLOW})])
    assert refused(guards, point)
    guards.compile([of("bystander", {point: lambda _: ALLOW}), *required(point)])
    assert not refused(guards, point)


def test_a_refusal_names_the_system_and_the_remedy() -> None:
    assert Guards().closed[Guard.PATH.name] == (
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
@pytest.mark.parametrize("point", KNOWN, ids=str)
async def test_a_point_refuses_while_a_system_that_guards_it_has_failed(
    point: Point, state: str, bystander: bool
) -> None:
    allow = {point: lambda _: ALLOW}
    names = point.requires or ("guardian",)
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
        "absent": bool(point.requires),
        "active": False,
        # What it guards is not known, so every effect is refused.
        "failed at boot": point.effects,
        "failed its test": True,
        "failed later": True,
    }
    assert refused(registry.security.guards, point) is wanted[state]
    guards = registry.security.guards
    assert refused(guards, point) is (point.name in guards.closed)
    failed = state.startswith("failed")
    assert [s.name for s in registry.security.failed] == list(names) * failed
    if failed:
        assert any(names[0] in told for told in registry.security.warnings())


@pytest.mark.parametrize("bystander", [False, True])
async def test_a_plugin_that_says_nothing_of_what_it_guards_closes_all_effects(
    bystander: bool,
) -> None:
    systems = [
        of(name, {p: lambda _: ALLOW for p in KNOWN if name in p.requires})
        for name in {name for point in KNOWN for name in point.requires}
    ]
    if bystander:
        systems.append(of("url_log", {point: lambda _: ALLOW for point in EFFECTS}))
    _, registry = await compiled(*planted(*systems))
    assert registry.security.guards.closed == {}
    _, registry = await compiled(*planted(*systems, raises_in_its_hook))
    closed = registry.security.guards.closed
    assert closed.keys() == NAMES_OF_EFFECTS
    assert closed[Guard.PATH.name] == (
        "file access is refused: the security system silent is not active (it has"
        " failed); enable or mend its plugin and restart"
    )
    state = registry.security.failed[0]
    assert state == SystemState(
        "silent", "security:silent", False, "RuntimeError: no such file: /etc/secret"
    )


async def test_a_system_says_at_which_points_nobody_will_ask_it() -> None:
    filled = {
        "tool_cal": lambda _: ALLOW,
        "wasm": lambda _: ALLOW,
        Guard.TOOL_CALL: lambda _: ALLOW,
    }
    plugins, registry = await compiled(*planted(of("s", filled)))
    assert plugins.healthy("security:s")
    [state] = registry.systems()
    assert state.active
    assert state.reason == "never asked at tool_cal, wasm: no plugin offers it"
    assert f"security: s is {state.reason}" in registry.security.warnings()


@dataclass(frozen=True, slots=True)
class DialCase:
    """A call about to be made."""

    number: str
    context: Context | None = None


def dial(**facts: Any) -> GuardPoint[DialCase]:
    """A point of a plugin."""
    return GuardPoint("dial", DialCase, "the call", **facts)


def phone(*points: Point, key: str = "plugin:phone") -> FakeEntry:
    """A plugin that offers points."""
    return entry(key, module(register_guard_point=lambda: points))


def no_premium(case: DialCase) -> Verdict:
    return Deny("too dear") if case.number.startswith("0900") else ALLOW


async def test_a_plugins_point_is_guarded_by_another_plugins_system() -> None:
    point = dial()
    system = of("thrift", {"dial": no_premium})
    plugins, registry = await compiled(phone(point), *planted(system))
    guards = registry.security.guards
    assert guards.filled(point)
    honest = DialCase("112")
    assert guards.check(point, honest) is honest
    with pytest.raises(Blocked, match="too dear"):
        guards.check(point, DialCase("0900 1"))
    [state] = registry.systems()
    assert (state.active, state.reason) == (True, None)
    assert plugins.healthy("plugin:phone")


async def test_a_plugins_point_that_nobody_guards_lets_all_pass() -> None:
    point = dial(effects=True)
    _, registry = await compiled(phone(point))
    assert not registry.security.guards.filled(point)
    assert not refused(registry.security.guards, point)


@pytest.mark.parametrize("bystander", [False, True])
async def test_a_plugins_point_is_closed_without_the_system_it_requires(
    bystander: bool,
) -> None:
    point = dial(requires=("thrift",))
    other = planted(of("other", {"dial": lambda _: ALLOW}))
    _, registry = await compiled(phone(point), *(other if bystander else []))
    assert registry.security.guards.closed["dial"].startswith("the call is refused")
    assert refused(registry.security.guards, point)
    _, registry = await compiled(
        phone(point), *planted(of("thrift", {point: no_premium}))
    )
    registry.security.guards.check(point, DialCase("112"))


async def test_a_plugins_point_is_closed_while_its_system_has_failed() -> None:
    point = dial()
    system = of("thrift", {"dial": no_premium}, test=fails_its_test)
    _, registry = await compiled(phone(point), *planted(system))
    assert refused(registry.security.guards, point)


async def test_a_plugins_point_of_effects_is_closed_by_who_never_spoke() -> None:
    loud, quiet = dial(effects=True), GuardPoint("hum", DialCase, "the humming")
    _, registry = await compiled(phone(loud, quiet), *planted(raises_in_its_hook))
    assert refused(registry.security.guards, loud)
    assert not refused(registry.security.guards, quiet)


async def test_a_point_refuses_once_its_own_plugin_has_failed() -> None:
    point = dial()
    plugins, registry = await compiled(phone(point))
    guards = registry.security.guards
    assert not refused(guards, point)
    plugins.fail("plugin:phone", "its service ran away")
    assert guards.filled(point)
    with pytest.raises(Blocked, match="no healthy plugin offers the guard point dial"):
        guards.check(point, DialCase("112"))


def test_a_point_that_was_never_offered_refuses() -> None:
    assert refused(Guards(), dial())
    # So does one that takes the name of another, or is the same in all but identity.
    known = Guard.TOOL_CALL
    for twin in (
        GuardPoint("tool_call", DialCase, "the call"),
        GuardPoint("tool_call", known.case, known.what),
    ):
        assert refused(Guards(), twin)
    assert not refused(Guards(), known)


@pytest.mark.parametrize("name", ["path", "dial"])
async def test_a_point_whose_name_is_taken_fails_its_plugin(name: str) -> None:
    first, second = (
        phone(dial()),
        phone(GuardPoint(name, DialCase, "the call"), key="plugin:zzz"),
    )
    plugins, registry = await compiled(first, second)
    assert not plugins.healthy("plugin:zzz")
    [reason] = [s.reason for s in plugins.states() if s.key == "plugin:zzz"]
    owner = "plugin:phone" if name == "dial" else "the kernel"
    assert reason == f"plugin:zzz offers guard point {name}, which {owner} has taken"
    assert plugins.healthy("plugin:phone")
    assert "path" in registry.security.guards.closed


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
    _, registry = await compiled(*planted(hook), budget=0.5)
    done.set()
    assert "took longer than 0.5 s" in str(registry.security.failed[0].reason)
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
    for point in KNOWN:
        names = {field.name for field in fields(point.case)}
        assert names & {"context", "principal"} or point is Guard.REQUEST
        assert not point.replaceable or point.replaceable in names


def test_the_page_about_guards_lists_the_points_as_they_are() -> None:
    page = Path(__file__).parents[3] / "docs" / "guards.md"
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    told = {name: (effect == "yes", requires) for name, _, effect, requires in rows}
    assert told == {p.name: (p.effects, ", ".join(p.requires)) for p in KNOWN}


def test_an_ask_is_put_where_calls_of_tools_begin_and_refuses_elsewhere() -> None:
    ask = Ask(Question("May it?"))
    case = ToolCallCase(CONTEXT, "tool", "read", {})
    told: list[Verdict] = []
    asking: dict[Any, Any] = {
        Guard.TOOL_CALL: lambda _: ask,
        Guard.TOOL_RESULT: lambda _: ask,
    }
    guards = Guards([of("cautious", asking)])
    guards.on_verdict = lambda _point, _case, verdict, _system: told.append(verdict)
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
