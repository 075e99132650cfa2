"""Plugins are found, selected and isolated; a fault names its plugin only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from agenthost import Effect, PluginError, ToolResult, ToolSpec, hookimpl
from agenthost.plugins.discovery import PluginState
from agenthost.plugins.loader import Plugins
from agenthost.plugins.validation import hook_names
from importlib_metadata import EntryPoint
from pydantic import BaseModel

from .entries import AGENTHOST, OTHER, FakeEntry, config, entry, module


class Nothing(BaseModel):
    """No arguments."""


async def answer(context: object, call: object) -> ToolResult:
    return ToolResult("done")


def tool(name: str = "good") -> ToolSpec:
    return ToolSpec(name, "A tool.", Nothing, Effect.READ, answer)


def good() -> ModuleType:
    return module(register_tool=lambda: [tool()])


def raises(error: BaseException) -> Callable[..., Any]:
    def hook() -> Any:
        raise error

    return hook


async def loaded(*entries: FakeEntry, budget: float = 10.0, **wanted: Any) -> Plugins:
    plugins = Plugins(entries, budget=budget)
    await plugins.load(config(**wanted))
    return plugins


def state(plugins: Plugins, key: str) -> PluginState:
    return next(s for s in plugins.states() if s.key == key)


def enabled(plugins: Plugins) -> set[str]:
    return {s.key for s in plugins.states() if s.status == "enabled"}


EVERY_KIND = (
    "plugin:http_api",
    "plugin:events",
    "plugin:jobs",
    "plugin:records",
    "plugin:storage",
    "plugin:web_ui",
    "plugin:cli",
    "plugin:mcp",
    "tool:files",
    "provider:offline",
    "provider:groq",
    "channel:telegram",
    "security:ssrf",
    "skill_runtime:python",
)


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("default", set()),
        (
            "minimal",
            {
                "plugin:web_ui",
                "plugin:mcp",
                "provider:groq",
                "channel:telegram",
                "skill_runtime:python",
            },
        ),
        ("api-only", {"plugin:web_ui", "channel:telegram"}),
    ],
)
async def test_a_set_decides_which_first_party_plugins_are_on(
    name: str, off: set[str]
) -> None:
    plugins = await loaded(*(entry(key) for key in EVERY_KIND), set=name)
    assert enabled(plugins) == set(EVERY_KIND) - off


@pytest.mark.setting("plugins.disable")
async def test_a_disabled_plugin_is_never_imported() -> None:
    one = entry("channel:telegram")
    plugins = await loaded(one, disable=["telegram"])
    assert state(plugins, "channel:telegram").status == "disabled"
    assert one.loaded == []


@pytest.mark.parametrize("version", ["1", "1.7", 1, 1.0])
async def test_a_plugin_may_name_the_version_of_the_hooks(version: object) -> None:
    plugins = await loaded(entry("tool:a", written_for(version)))
    assert enabled(plugins) == {"tool:a"}


@pytest.mark.setting("plugins.enable")
@pytest.mark.parametrize("name", ["tool:mine", "mine", "tool:m*", "min?"])
async def test_another_distribution_is_off_until_listed(name: str) -> None:
    assert enabled(await loaded(entry("tool:mine", dist=OTHER))) == set()
    plugins = await loaded(entry("tool:mine", dist=OTHER), enable=[name])
    assert enabled(plugins) == {"tool:mine"}
    assert state(plugins, "tool:mine").distribution == "other-plugins"
    assert state(plugins, "tool:mine").version == "2.5"


async def test_disable_wins_over_enable() -> None:
    plugins = await loaded(entry("tool:files"), enable=["files"], disable=["tool:*"])
    assert enabled(plugins) == set()


async def test_an_unknown_name_in_a_list_is_a_warning() -> None:
    plugins = Plugins([entry("channel:telegram")])
    warnings = await plugins.load(config(enable=["telegrm"], disable=["slack:*"]))
    assert warnings[0] == (
        "plugins.enable: no plugin is named 'telegrm'; did you mean 'telegram'?"
    )
    assert warnings[1].startswith("plugins.disable: no plugin is named 'slack:*'")


async def test_the_same_key_twice_refuses_to_start_naming_both() -> None:
    plugins = Plugins([entry("tool:x"), entry("tool:x", dist=OTHER)])
    with pytest.raises(PluginError) as caught:
        await plugins.load(config())
    assert "agenthost 0.1.0" in caught.value.message
    assert "other-plugins 2.5" in caught.value.message


async def test_the_same_slug_of_two_kinds_is_fine() -> None:
    plugins = await loaded(entry("tool:x"), entry("provider:x"))
    assert enabled(plugins) == {"tool:x", "provider:x"}


async def test_other_groups_are_not_ours() -> None:
    foreign = FakeEntry("x", "pytest11", lambda: None)
    assert (await loaded(foreign)).states() == []


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("broken_plugin", None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError"),
        ("from agenthost import no_such_name", "ImportError"),
        ("def broken(:\n    pass", "SyntaxError"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("raise SystemExit", "SystemExit"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise RecursionError", "RecursionError"),
    ],
)
async def test_a_plugin_that_cannot_be_imported_is_named_and_others_go_on(
    source: Path, text: str, reason: str
) -> None:
    (source / "broken_plugin.py").write_text(text)
    real = EntryPoint("broken", "broken_plugin", "agenthost.tools")
    broken = FakeEntry("broken", "agenthost.tools", real.load, AGENTHOST)
    plugins = await loaded(broken, entry("tool:good", good))
    failed = state(plugins, "tool:broken")
    assert failed.status == "failed"
    assert failed.reason is not None
    assert failed.reason.startswith(reason)
    assert [key for key, _ in await plugins.collect("register_tool")] == ["tool:good"]


async def test_an_interrupt_that_a_plugin_raises_is_its_own_failure() -> None:
    """A person's Ctrl-C reaches the main thread alone, never a plugin's import."""
    plugins = Plugins([entry("tool:x", raises(KeyboardInterrupt()))])
    await plugins.load(config())
    assert state(plugins, "tool:x").reason == "KeyboardInterrupt"
    assert plugins.failed


class NamelessDistribution:
    """Its metadata lacks what they must have."""

    @property
    def name(self) -> str:
        raise KeyError("Metadata field Name not present")


async def test_a_distribution_without_facts_is_an_unknown_one() -> None:
    nameless = FakeEntry("x", "agenthost.tools", module, NamelessDistribution())
    plugins = Plugins([nameless, entry("tool:good", good)])
    await plugins.load(config())
    found = state(plugins, "tool:x")
    assert (found.distribution, found.version) == ("an unknown distribution", "unknown")
    assert plugins.healthy("tool:good")


class CountingDistribution:
    """Counts how often its metadata is read."""

    version = "1.0"
    reads = 0

    @property
    def name(self) -> str:
        self.reads += 1
        return "agenthost"


async def test_the_metadata_of_a_distribution_is_read_once() -> None:
    counting = CountingDistribution()
    slugs = ("x", "y", "z")
    await Plugins(
        [FakeEntry(slug, "agenthost.tools", module, counting) for slug in slugs]
    ).load(config())
    assert counting.reads == 1


async def test_what_is_left_out_is_not_imported_and_says_why() -> None:
    wild, good_one = entry("tool:wild", good), entry("tool:good", good)
    plugins = Plugins([wild, good_one])
    await plugins.load(config(), {"tool:wild": "it stood still", "tool:gone": "no"})
    assert (wild.loaded, good_one.loaded) == ([], ["tool:good"])
    assert state(plugins, "tool:wild").reason == "left out: it stood still"
    assert plugins.healthy("tool:good")


async def coroutine_hook() -> list[ToolSpec]:
    return [tool()]


def misspelt() -> ModuleType:
    return module(register_tools=lambda: [tool()])


def wrapper() -> ModuleType:
    made = ModuleType("wrapping")

    @hookimpl(wrapper=True)
    def register_tool() -> Any:
        return (yield)

    vars(made)["register_tool"] = register_tool
    return made


def old_wrapper() -> ModuleType:
    made = ModuleType("wrapping")

    @hookimpl(hookwrapper=True)
    def register_tool() -> Any:
        yield

    vars(made)["register_tool"] = register_tool
    return made


def unmarked() -> ModuleType:
    made = ModuleType("unmarked")
    vars(made)["register_tool"] = lambda: [tool()]
    return made


def ordered(*, first: bool) -> Callable[[], ModuleType]:
    def make() -> ModuleType:
        made = ModuleType("ordered")

        @hookimpl(tryfirst=first, trylast=not first)
        def register_tool() -> list[ToolSpec]:
            return [tool()]

        vars(made)["register_tool"] = register_tool
        return made

    return make


def written_for(version: object) -> Callable[[], ModuleType]:
    def make() -> ModuleType:
        made = module(register_tool=lambda: [tool()])
        vars(made)["agenthost_api"] = version
        return made

    return make


def a_class() -> type:
    return Nothing


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (misspelt, "register_tools is not a hook; did you mean 'register_tool'?"),
        (wrapper, "register_tool is a wrapper; hooks cannot be wrapped"),
        (old_wrapper, "register_tool is a wrapper; hooks cannot be wrapped"),
        (ordered(first=True), "tryfirst, trylast do nothing; remove them"),
        (ordered(first=False), "tryfirst, trylast do nothing; remove them"),
        (
            written_for("2"),
            (
                "is made for hooks 2, not 1; install the version of it, or of "
                "agenthost, that fits"
            ),
        ),
        (written_for("1x"), "is made for hooks 1x, not 1"),
        (written_for(None), "is made for hooks None, not 1"),
        (unmarked, "register_tool is not marked; put @hookimpl above it"),
        (a_class, "is a class; offer a module or an instance"),
        (
            lambda: module(register_tool=coroutine_hook),
            "register_tool is async; hooks are plain functions",
        ),
        (lambda: module(register_tool=lambda _nonsense: []), "nonsense"),
    ],
)
async def test_a_plugin_that_breaks_the_hook_rules_is_failed(
    plugin: Callable[[], object], reason: str
) -> None:
    plugins = await loaded(entry("tool:x", plugin), entry("tool:good", good))
    failed = state(plugins, "tool:x")
    assert failed.status == "failed"
    assert reason in str(failed.reason)
    assert enabled(plugins) == {"tool:good"}


def awaitable() -> Any:
    return coroutine_hook()


def endless() -> Iterator[ToolSpec]:
    while True:
        yield tool()


def half() -> Iterator[ToolSpec]:
    yield tool()
    raise RuntimeError("half way")


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (awaitable, "register_tool returned a coroutine"),
        (lambda: None, "returned NoneType; it must return an iterable of ToolSpec"),
        (lambda: "text", "returned str"),
        (lambda: {"a": tool()}, "returned dict"),
        (lambda: 7, "returned int"),
        (lambda: [tool(), "x"], "offers str; it must offer ToolSpec"),
        (lambda: [ToolSpec], "offers type; it must offer ToolSpec"),
        (lambda: [coroutine_hook()], "offers coroutine"),
        (endless, "more than 10000"),
        (half, "RuntimeError: half way"),
        (raises(SystemExit(1)), "SystemExit: 1"),
        (raises(RuntimeError("two\nlines")), "RuntimeError: two lines"),
    ],
)
async def test_a_wrong_answer_fails_its_plugin_and_hides_nobody_elses(
    hook: Callable[[], Any], reason: str
) -> None:
    plugins = await loaded(
        entry("tool:a", good),
        entry("tool:b", module(register_tool=hook)),
        entry("tool:c", good),
    )
    offered = await plugins.collect("register_tool")
    assert [key for key, _ in offered] == ["tool:a", "tool:c"]
    assert reason in str(state(plugins, "tool:b").reason)


BOOT_HOOKS = [name for name in hook_names() if name != "on_event"]


@pytest.mark.parametrize("hook", BOOT_HOOKS)
async def test_a_raise_in_any_hook_fails_only_its_plugin(hook: str) -> None:
    broken = module(**{hook: raises(ValueError("no"))})
    plugins = await loaded(entry("plugin:x", broken), entry("tool:good", good))
    arguments = (None,) if hook == "register_routes" else ()
    await plugins.collect(hook, *arguments)
    assert state(plugins, "plugin:x").reason == "ValueError: no"
    assert enabled(plugins) == {"tool:good"}


@pytest.mark.parametrize("hook", BOOT_HOOKS)
async def test_a_wrong_type_of_any_hook_fails_only_its_plugin(hook: str) -> None:
    broken = module(**{hook: lambda: 3})
    plugins = await loaded(entry("plugin:x", broken), entry("tool:good", good))
    arguments = (None,) if hook == "register_routes" else ()
    offered = await plugins.collect(hook, *arguments)
    assert "plugin:x" not in dict(offered)
    assert enabled(plugins) == {"tool:good"}


async def test_a_plugin_that_blocks_is_named_and_boot_goes_on() -> None:
    release = threading.Event()
    blocking = module(register_tool=lambda: release.wait(30))
    plugins = await loaded(entry("tool:a", blocking), entry("tool:b", good), budget=0.5)
    offered = await plugins.collect("register_tool")
    release.set()
    assert [key for key, _ in offered] == ["tool:b"]
    assert state(plugins, "tool:a").reason == (
        "tool:a register_tool took longer than 0.5 s"
    )


async def test_a_stall_is_logged_with_its_plugin_before_the_budget_ends(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost.plugins.calls.SLOW", 0.01)
    release = threading.Event()

    def until_named() -> list[ToolSpec]:
        release.wait(30)
        return [tool()]

    class Watch:
        def filter(self, record: Any) -> bool:
            release.set()
            return True

    watch = Watch()
    caplog.handler.addFilter(watch)
    plugins = await loaded(entry("tool:a", module(register_tool=until_named)))
    assert len(await plugins.collect("register_tool")) == 1
    caplog.handler.removeFilter(watch)
    assert "tool:a register_tool has been running" in caplog.text


async def test_hooks_run_off_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def remember() -> list[ToolSpec]:
        threads.append(threading.current_thread())
        return []

    plugins = await loaded(entry("tool:a", module(register_tool=remember)))
    await plugins.collect("register_tool")
    assert threads[0] is not threading.main_thread()


async def test_a_failed_plugin_is_not_asked_again() -> None:
    plugins = await loaded(entry("tool:a", good))
    plugins.fail("tool:a", "broke later")
    plugins.fail("tool:a", "again")
    plugins.fail("tool:unknown", "never loaded")
    assert await plugins.collect("register_tool") == []
    assert state(plugins, "tool:a").reason == "broke later"


async def test_an_instance_may_be_a_plugin_and_leave_arguments_out() -> None:
    class Instance:
        @hookimpl
        def register_tool(self) -> list[ToolSpec]:
            return [tool()]

        @hookimpl
        def register_routes(self) -> list[Any]:
            return []

    plugins = await loaded(entry("tool:a", Instance))
    assert len(await plugins.collect("register_tool")) == 1
    assert await plugins.collect("register_routes", object()) == []
    assert enabled(plugins) == {"tool:a"}


async def test_first_party_plugins_come_first() -> None:
    plugins = await loaded(
        entry("tool:a", good, OTHER), entry("tool:z", good), enable=["tool:a"]
    )
    offered = await plugins.collect("register_tool")
    assert [key for key, _ in offered] == ["tool:z", "tool:a"]


async def test_the_installed_entry_points_are_found() -> None:
    plugins = Plugins()
    await plugins.load(config(disable=["*"]))
    keys = {s.key for s in plugins.states() if s.distribution == "agenthost"}
    assert {"plugin:http_api", "provider:offline", "tool:files"} <= keys
