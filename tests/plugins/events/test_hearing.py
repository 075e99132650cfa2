"""What a plugin hears is what its annotation names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Union

import pytest
from agenthost import Event, PluginError, ToolEvent, TurnEnded
from agenthost.testing import Daemons
from agenthost_events.hearing import kinds_of

from tests.kernel.plugins.entries import module

if TYPE_CHECKING:
    from agenthost import AgentSpawned

    from .nowhere import Missing  # type: ignore[import-not-found]  # the point of it


def bare(event):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - the point of it
    return None


def every(event: Event) -> None: ...


def anything(event: Any) -> None: ...


def objects(event: object) -> None: ...


def nothing() -> None: ...


def one(event: TurnEnded) -> None: ...


def several(event: AgentSpawned | ToolEvent) -> None: ...


def joined(event: Union[TurnEnded, ToolEvent]) -> None: ...  # noqa: UP007 - also this


@wraps(one)
def wrapped(*given: Any) -> None: ...


@pytest.mark.parametrize("function", [bare, every, anything, objects, nothing])
def test_without_a_kind_it_hears_all(function: Callable[..., None]) -> None:
    assert kinds_of(function) == (Event,)


def test_it_hears_the_kinds_that_it_names() -> None:
    from agenthost import AgentSpawned

    assert kinds_of(one) == (TurnEnded,)
    assert kinds_of(wrapped) == (TurnEnded,)
    assert kinds_of(joined) == (TurnEnded, ToolEvent)
    assert kinds_of(several) == (AgentSpawned, ToolEvent)


def test_a_method_and_what_is_called_as_one_are_fine() -> None:
    class Plugin:
        def on_event(self, event: TurnEnded) -> None: ...

        def __call__(self, event: TurnEnded) -> None: ...

    assert kinds_of(Plugin().on_event) == (TurnEnded,)
    assert kinds_of(Plugin()) == (Event,)


def number(event: int) -> None: ...


def lost(event: Missing) -> None: ...


def mixed(event: TurnEnded | str) -> None: ...


@pytest.mark.parametrize("function", [number, lost, mixed])
def test_what_names_no_kind_is_refused_with_the_remedy(
    function: Callable[..., None],
) -> None:
    with pytest.raises(PluginError, match=r"on_event: .*(import what|name Event or)"):
        kinds_of(function)


async def test_a_plugin_that_names_no_kind_fails_and_the_daemon_runs(
    daemons: Daemons,
) -> None:
    def on_event(event: int) -> None: ...

    running = await daemons.start(plugins=[module(on_event=on_event)])
    detail = (await running.http.get("/api/health/detail")).json()
    (state,) = [s for s in detail["plugins"] if s["key"] == "plugin:made_on_the_spot"]
    assert state["status"] == "failed"
    assert "is no kind of event" in state["reason"]
    assert detail["listeners"] == []
