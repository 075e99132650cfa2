"""What every security system promises, as tests to inherit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import PurePosixPath
from typing import Any, ClassVar, get_type_hints

import pytest
from agenthost_chat.chat import Message, Role, Text, ToolOutput, ToolUse

from ..context import Context, Grants, Principal, PrincipalKind
from ..errors import AgentHostError
from ..plugins.guards import Guards, SecuritySystem
from ..plugins.points import KNOWN, Guard, GuardPoint
from ..plugins.security import is_async
from ..ports.backend import Backends
from .steps import check_steps

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_GROUPS = ("agenthost.security", "agenthost.plugins")
_LONGEST_REASON = 1_000

HOSTILE = (
    "",
    " ",
    "\0",
    ".",
    "..",
    "/",
    "~",
    "-",
    "\n" * 100,
    "../" * 10_000 + "etc/passwd",
    "..\\..\\windows",
    "%2e%2e%2f%2e%2e%2f",
    "/etc/passwd",
    "a" * 1_000_000,
    "a/" * 100_000,
    "." * 100_000,
    "*" * 10_000,
    "[" * 10_000,
    "{{7*7}}${7*7}",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "\ud800\udfff",
    "\u202egnp.exe",
    "\U000e0041\U000e0042",
    "\u200b\ufeff",
    "e\u0301" * 10_000,
    "\uff0e\uff0e\uff0f",
    "127.0.0.1",
    "0x7f.1",
    "2130706433",
    "::ffff:127.0.0.1",
    "[::1]",
    "169.254.169.254",
    "fe80::1%eth0",
    "localhost.",
    "xn--a",
    "999.999.999.999",
    "1.1.1.1",
    "a.example",
)
"""What strangers send where a text is expected."""

_NUMBERS = (-1, 0, 65_536, 2**64)


def hostile_cases(point: GuardPoint[Any]) -> Iterator[Any]:
    """Make cases of a point in which every text is hostile.

    Raises:
        TypeError: The case has a field of a type that is not known here.
    """
    hints = get_type_hints(point.case)
    for count, text in enumerate(HOSTILE):
        facts = {f.name: _made(hints[f.name], text, count) for f in fields(point.case)}
        yield point.case(**facts)


def _made(wanted: Any, text: str, count: int) -> Any:
    if wanted is PurePosixPath:
        return PurePosixPath(text)
    odd = bool(count % 2)
    grants = Grants({"tool": (text,), text: ("*", text)})
    principal = Principal(PrincipalKind.AGENT, text, grants if odd else None)
    context = Context(principal, turn_id=text, labels=frozenset({text}))
    values: Mapping[Any, Any] = {
        str: text,
        int: _NUMBERS[count % len(_NUMBERS)],
        bool: odd,
        tuple[Message, ...]: _said(text),
        Principal: principal,
        Context: context,
        Context | None: context if odd else None,
        frozenset[str]: frozenset({text, "a.example"}),
        frozenset[str] | None: frozenset({text}) if odd else None,
        tuple[str, ...]: (text, "a"),
        Mapping[str, Any]: {"a": text, text: [text, {text: None}], "n": 2**64},
        Mapping[str, tuple[str, ...]]: grants.patterns,
    }
    if wanted not in values:
        raise TypeError(f"no hostile {wanted} is known; give cases of your own")
    return values[wanted]


def offered_systems() -> Iterator[SecuritySystem]:
    """Yield the systems of every installed plugin that can be imported."""
    for plugin in _installed():
        if hasattr(plugin, "security_system"):
            system = plugin.security_system()
            if system is not None:
                yield system


def _installed() -> Iterator[Any]:
    for group in _GROUPS:
        for entry in entry_points(group=group):
            try:
                yield entry.load()
            except ImportError:
                continue


def _said(text: str) -> tuple[Message, ...]:
    """A conversation in which nothing is as it should be."""
    use, output = ToolUse(text, text, {text: text}), ToolOutput(text, text, text)
    return (
        Message(Role.TOOL, (output, output, Text(text))),
        Message(Role.ASSISTANT, (Text(text), use, use)),
        Message(Role.USER, ()),
        Message(Role.USER, (Text(text), output)),
    )


class SecurityContract:
    """A security system keeps every promise of one.

    A subclass names the system and says how to break what it protects with. For a
    point of a plugin it names the point, and gives cases where a field is of a type
    of its own.

    Example:
        ::

            class TestThrift(SecurityContract):
                system = "thrift"
                points = (DIAL,)

                def sabotage(self, patch: pytest.MonkeyPatch) -> None:
                    patch.setattr(thrift, "is_dear", lambda number: False)
    """

    system: ClassVar[str]
    points: ClassVar[Sequence[GuardPoint[Any]]] = ()
    """Points of plugins that it fills."""

    @pytest.fixture
    def spec(self) -> SecuritySystem:
        """The system as its plugin offers it."""
        found = [each for each in offered_systems() if each.name == self.system]
        assert len(found) == 1, f"{self.system} is offered {len(found)} times"
        return found[0]

    def cases(self, point: GuardPoint[Any]) -> Iterator[Any]:
        """Give the cases that it is asked at a point."""
        return hostile_cases(point)

    def sabotage(self, patch: pytest.MonkeyPatch) -> None:
        """Break what the system protects with, so that its self-test must fail."""
        del patch
        pytest.fail("say in sabotage() how to break it")

    def test_its_name_is_plain(self, spec: SecuritySystem) -> None:
        """The name is snake_case, as points require it and refusals tell it."""
        assert _NAME.fullmatch(spec.name), spec.name

    def test_its_points_exist(self, spec: SecuritySystem) -> None:
        """It fills points of the kernel, and of plugins those that the test names."""
        known = {point.name for point in (*KNOWN, *self.points)}
        assert not {*map(str, spec.guards)} - known

    def test_its_guards_are_plain_functions(self, spec: SecuritySystem) -> None:
        """A guard answers at once: it is not async."""
        assert not [name for name, guard in spec.guards.items() if is_async(guard)]

    def test_its_self_test_passes(self, spec: SecuritySystem) -> None:
        """It proves itself, more than once."""
        for _ in range(2):
            assert _prove(spec) is None

    def test_its_self_test_can_fail(
        self, spec: SecuritySystem, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once it is broken, its self-test tells."""
        self.sabotage(monkeypatch)
        with pytest.raises(Exception):  # noqa: B017, PT011 - it may raise anything
            _prove(spec)

    def test_hostile_cases_get_a_verdict(self, spec: SecuritySystem) -> None:
        """Whatever it is asked, it answers with a verdict, and refuses in few words."""
        for guards, point in self._asked(spec):
            for case in self.cases(point):
                reason = _reason(guards, point, case)
                assert len(reason) <= _LONGEST_REASON, f"{point}: {reason[:80]}..."
                reason.encode("utf-8")

    async def test_it_leaves_the_loop_free(self, spec: SecuritySystem) -> None:
        """No case takes the event loop's thread for long, or blocks it."""
        for guards, point in self._asked(spec):
            if point is Guard.MANIFEST:  # it is asked in a thread
                continue
            for case in self.cases(point):
                asking = partial(_ask, guards, point, case)
                await check_steps(f"{spec.name} at {point}", asking)

    def _asked(self, spec: SecuritySystem) -> Iterator[tuple[Guards, GuardPoint[Any]]]:
        """Give each point that it fills, with guards that ask it alone."""
        for point in (*KNOWN, *self.points):
            if point.name in spec.guards:
                alone = replace(point, requires=())
                guards = Guards(fail=_broken)
                guards.compile([spec], points=[alone])
                yield guards, alone


def _reason(guards: Guards, point: GuardPoint[Any], case: Any) -> str:
    try:
        guards.check(point, case)
    except AgentHostError as error:
        return error.message
    return ""


async def _ask(guards: Guards, point: GuardPoint[Any], case: Any) -> None:
    guards.check(point, case)


def _broken(name: str, reason: str) -> None:
    pytest.fail(f"{name}: {reason[:_LONGEST_REASON]}")


def _prove(spec: SecuritySystem) -> object:
    if spec.proves_on is None:
        return spec.self_test()  # type: ignore[func-returns-value]  # reason: a plugin may return anything
    offers = [
        backend
        for plugin in _installed()
        if hasattr(plugin, "register_backend")
        for backend in plugin.register_backend()
    ]
    found = Backends(tuple(offers)).find(spec.proves_on)
    return spec.self_test(found.open)  # type: ignore[func-returns-value]  # reason: a plugin may return anything
