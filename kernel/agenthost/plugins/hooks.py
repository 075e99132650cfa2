"""The hooks: what a plugin may offer, and when it is asked.

Hooks are synchronous functions of a module. The loader calls each implementation on
its own, so one that raises never hides another's answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ..events import Event
from .guards import SecuritySystem
from .marks import hookspec
from .points import GuardPoint
from .sources import ToolSource
from .specs import ConfigSection, SchemaSpec, ServiceSpec, ToolSpec
from .surface_hooks import SurfaceHooks

if TYPE_CHECKING:
    from ..embedders import EmbedderSpec
    from ..manifest_table import ManifestTable
    from ..observe import Observer
    from ..ports.backend import Backend
    from ..providers import DialectSpec, ProviderSpec


class Hooks(SurfaceHooks, Protocol):
    """What a plugin may offer. Implement any of these as functions of a module."""

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
    def register_tool_source(self) -> Iterable[ToolSource]:
        """Offer sources of tools that appear and vanish while the daemon runs.

        Called once at boot, off the event loop. A source's tools join those of
        ``register_tool``; a tool whose name is taken, or whose schema is none, is left
        out alone, with a warning. A turn keeps the list of tools that it began with;
        a call of a tool that has gone meanwhile is answered with the source's reason.
        An exception marks this plugin failed.

        Returns:
            The sources, each an object of its own for this daemon.

        Example:
            ::

                class Weather(ToolSource):
                    name = "weather"

                    def snapshot(self) -> Iterable[ToolSpec]:
                        return [tool_of(each) for each in self.listed]

                    def gone(self, tool: str) -> str:
                        return "the weather server was disconnected"

                @hookimpl
                def register_tool_source() -> Iterable[ToolSource]:
                    yield Weather()
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
    def register_embedder(self) -> Iterable[EmbedderSpec]:
        """Offer how the providers of a dialect, or a driver, turn texts into vectors.

        Called when the plugin is enabled; a taken name or an exception marks it failed.

        Example:
            ::

                @hookimpl
                def register_embedder() -> Iterable[EmbedderSpec]:
                    yield EmbedderSpec("acme-chat", embed_at_acme)
        """

    @hookspec
    def on_event(self, event: Event) -> None:
        """Hear of something that happened.

        Called for each event after its cause was committed, in a worker thread, one
        event at a time for each plugin. An implementation that raises or takes longer
        than its time budget is logged and, when it goes on, no longer called.

        Args:
            event: One of the kinds that its annotation names, joined by ``|``; without
                an annotation, or with ``Event``, all kinds. What nobody wants to hear
                is not even made. The kinds stand in events.md.

        Example:
            ::

                @hookimpl
                def on_event(event: AgentSpawned | TurnEnded) -> None:
                    if isinstance(event, TurnEnded):
                        print(event.agent, event.state)
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
    def register_config(self) -> Iterable[ConfigSection]:
        """Offer sections of ``config.toml`` that the plugin reads.

        Called once at boot, off the event loop. The whole configuration is checked
        against the models before anything is opened: a wrong value stops the start,
        naming line, key and remedy; an unknown key is a warning. Each key can be given
        by the environment as well, as in ``AGENTHOST_ACME__TOKEN``. A section that
        another plugin or agenthost itself has taken, or one within it or around it,
        marks this plugin failed.

        Returns:
            The sections; ``host.settings(model)`` gives what one of them says.

        Example:
            ::

                class Acme(BaseModel):
                    token: Secret | None = Field(None, description="Key of the API.")
                    rooms: tuple[str, ...] = Field((), description="Where to listen.")

                @hookimpl
                def register_config() -> Iterable[ConfigSection]:
                    yield ConfigSection("acme", Acme)
        """

    @hookspec
    def register_guard_point(self) -> Iterable[GuardPoint[Any]]:
        """Offer guard points: the one place where the plugin does what may be refused.

        Called once at boot, off the event loop. A name that the kernel or another
        plugin has taken marks this plugin failed, and so does an exception. While the
        plugin has failed, its points refuse whatever is asked.

        Returns:
            The points. The plugin asks them with ``host.guards.check(point, case)``,
            each at one place; security systems fill them by their name.

        Example:
            ::

                @dataclass(frozen=True, slots=True)
                class DialCase:
                    number: str
                    context: Context | None = None

                DIAL = GuardPoint("dial", DialCase, "the call", effects=True)

                @hookimpl
                def register_guard_point() -> Iterable[GuardPoint[DialCase]]:
                    yield DIAL
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
        """Offer observers of turns, model and tool calls, verdicts and refusals.

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
    def register_manifest(self) -> Iterable[ManifestTable[Any]]:
        """Offer keys of agents' manifests that this plugin reads.

        Called once at boot, off the event loop. A key that agenthost or another plugin
        reads marks this plugin failed; two plugins may each read keys of one table.
        From then on a manifest with a wrong value is refused, naming the key, and a
        misspelt key is told of when an agent is made. Manifests that were kept before
        are not looked at until the plugin reads them.

        Returns:
            The tables, each a name and a pydantic model whose fields have defaults;
            the name is empty for keys outside every table.

        Example:
            ::

                class Greeting(BaseModel):
                    words: str = Field("hello", description="What it says first.")

                GREETING = ManifestTable("greeting", Greeting)

                @hookimpl
                def register_manifest() -> Iterable[ManifestTable[Any]]:
                    yield GREETING

                async def greet(context: ToolContext, call: Greet) -> ToolResult:
                    return ToolResult(GREETING.of(context.agent.manifest).words)
        """
