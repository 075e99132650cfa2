"""The hooks: what a plugin may offer, and when it is asked.

Hooks are synchronous functions of a module. The loader calls each implementation on
its own, so one that raises never hides another's answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import pluggy

from ..events import Event
from .guards import SecuritySystem
from .specs import CommandSpec, SchemaSpec, ServiceSpec, ToolSpec

if TYPE_CHECKING:
    from quart import Quart

    from ..observe import Observer
    from ..ports.backend import Backend
    from ..providers import DialectSpec, ProviderSpec
    from ..routes import Mountable

PROJECT = "agenthost"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Hooks(Protocol):
    """What a plugin may offer. Implement any of these as functions of a module."""

    @hookspec
    def register_routes(self, app: Quart) -> Iterable[Mountable]:
        """Offer HTTP routes and WebSockets.

        Called once at boot, off the event loop. Every route names its required scope
        and rate cost; access is decided before the handler runs. A path that another
        plugin has taken marks this plugin failed. An exception does the same;
        everything else goes on.

        Args:
            app: The Quart application, for what a route group cannot say. Leave
                it out where it is not needed.

        A Quart Blueprint is served as it is, but for WebSockets. Its routes need the
        scope ``<name>:read`` (GET, HEAD) or ``<name>:write``, cost 5 units and pass the
        same limits and rules as a group's.

        Returns:
            The groups and Blueprints to mount.

        Example:
            ::

                routes = RouteGroup("greetings")

                @routes.get("/api/greeting", scope="system:read")
                async def greeting(call: Call) -> Answer:
                    return {"greeting": "hello"}

                @hookimpl
                def register_routes(app: Quart) -> Iterable[RouteGroup]:
                    yield routes
        """

    @hookspec
    def register_tool(self) -> Iterable[ToolSpec]:
        """Offer tools to agents.

        Called when the plugin is enabled and again after a reload, off the event
        loop. A name that another plugin has already taken is refused, naming both
        plugins. An exception marks this plugin failed; everything else goes on.

        Returns:
            The tools, in any order; agents see them sorted by name.

        Example:
            ::

                @hookimpl
                def register_tool() -> Iterable[ToolSpec]:
                    yield ToolSpec(
                        name="system_time",
                        description="Tell the current time.",
                        input=SystemTime,
                        effect=Effect.READ,
                        call=system_time,
                    )
        """

    @hookspec
    def register_provider(self) -> Iterable[ProviderSpec]:
        """Offer model providers.

        Called when the plugin is enabled and again after a reload, off the event
        loop. A slug that another plugin has already taken is refused, naming both
        plugins. An exception marks this plugin failed; everything else goes on.

        Returns:
            The providers, each with its facts and its dialect or driver.

        Example:
            ::

                @hookimpl
                def register_provider() -> Iterable[ProviderSpec]:
                    yield ProviderSpec(FACTS, "openai-chat")
        """

    @hookspec
    def register_dialect(self) -> Iterable[DialectSpec]:
        """Offer wire dialects to providers that are declared in the configuration.

        Called when the plugin is enabled, off the event loop. A name that another
        plugin has already taken is refused. An exception marks this plugin failed.

        Returns:
            The dialects by name, each with a function that makes one from quirks.

        Example:
            ::

                @hookimpl
                def register_dialect() -> Iterable[DialectSpec]:
                    yield DialectSpec("openai-chat", OpenAIChat.from_quirks)
        """

    @hookspec
    def on_event(self, event: Event) -> None:
        """Hear of something that happened.

        Called for each event after its cause was committed, in a worker thread, one
        event at a time for each plugin. An implementation that raises or takes longer
        than its time budget is logged and, when it goes on, no longer called.

        Args:
            event: Its kind, subject, time and JSON data.

        Example:
            ::

                @hookimpl
                def on_event(event: Event) -> None:
                    if event.kind == "agent_spawned":
                        print(event.subject)
        """

    @hookspec
    def security_system(self) -> SecuritySystem | None:
        """Offer one protection and the guard points it fills.

        Called once at boot, off the event loop, before any other hook. Its self-test
        runs before anything is served. A guard is a plain function of the point's
        case: one that is async fails this plugin, and so does one that raises or
        answers anything but a verdict, which refuses what it was asked. While this
        plugin has failed, each point that its system guards refuses everything; when
        it fails before it has said which they are, every point of effects does.

        Returns:
            The system, or None when the platform has no use for it.

        Example:
            ::

                @hookimpl
                def security_system() -> SecuritySystem:
                    return SecuritySystem("no_shouting", {Guard.TOOL_CALL: quiet}, test)
        """

    @hookspec
    def register_backend(self) -> Iterable[Backend]:
        """Offer a backend: what serves one of the kernel's ports.

        Called once at boot, off the event loop, before anything is opened. Two
        backends of one name at one port are refused, naming both plugins. A port
        nobody serves stops the boot with a message that names it.

        Returns:
            The backends, each of its port's class, with a name and what opens it.

        Example:
            ::

                @hookimpl
                def register_backend() -> Iterable[Backend]:
                    yield StoreBackend("sqlite", SqliteStore.open)
        """

    @hookspec
    def register_schema(self) -> SchemaSpec | tuple[SchemaSpec, ...] | None:
        """Offer the plugin's own tables.

        Called once at boot before the store opens for others. A step that fails stops
        the boot, leaving the database as it was. A disabled plugin's tables stay.

        Returns:
            The tables and the steps that lead to them; a tuple of several, each with
            a version of its own; or None.

        Example:
            ::

                @hookimpl
                def register_schema() -> SchemaSpec:
                    return SchemaSpec("greetings", metadata, steps=(create_greetings,))
        """

    @hookspec
    def register_service(self) -> Iterable[ServiceSpec]:
        """Offer something that runs as long as the daemon.

        Called once at boot, off the event loop. An exception here or in ``start``
        marks this plugin failed; everything else goes on. So does a ``start`` that
        takes longer than 30 s; a ``stop`` that takes longer than 10 s is left behind.

        Returns:
            The services; they start in any order and stop before the store closes.

        Example:
            ::

                @hookimpl
                def register_service() -> Iterable[ServiceSpec]:
                    yield ServiceSpec("watcher", start=watch, stop=unwatch)
        """

    @hookspec
    def register_observer(self) -> Iterable[Observer]:
        """Offer observers of turns, model calls and tool calls.

        Called once at boot, off the event loop. An observer is told of each begin
        and end on the event loop, so it must not wait for anything. One that raises
        is dropped and marks this plugin failed; the turn goes on.

        Returns:
            The observers, each an object of a class of its own.

        Example:
            ::

                class Slowest(Observer):
                    seconds = 0.0

                    def ended(self, activity: Activity) -> None:
                        self.seconds = max(self.seconds, activity.seconds)

                @hookimpl
                def register_observer() -> Iterable[Observer]:
                    yield Slowest()
        """

    @hookspec
    def register_command(self) -> Iterable[CommandSpec]:
        """Offer commands of ``agenthost``.

        Called by the command line, never by the daemon. An exception is reported and
        the other commands stay usable.

        Returns:
            The click commands or groups.

        Example:
            ::

                @hookimpl
                def register_command() -> Iterable[CommandSpec]:
                    yield CommandSpec(greet)
        """
