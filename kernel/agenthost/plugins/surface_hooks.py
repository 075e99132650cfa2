"""The hooks of surfaces: what people and programs outside reach a plugin by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from .marks import hookspec
from .specs import Card, ChannelSpec, ChatCommand, CommandSpec, DeliverySpec

if TYPE_CHECKING:
    from quart import Quart

    from ..host import Authenticator
    from ..routes import Mountable


class SurfaceHooks(Protocol):
    """What a plugin may offer to whoever is outside."""

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
            The groups and Blueprints to mount; ``LateRoutes`` for a group whose module
            a start should not wait for.

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
    def register_authenticator(self) -> Iterable[Authenticator]:
        """Offer ways to tell who asks.

        Called once at boot, off the event loop. The front looks for the configured
        key first, then asks the authenticators of all plugins in order until one
        answers with a principal; when none does, the request is refused as one
        without a key is. An authenticator is asked at every request that shows a key
        other than the configured one, with a time limit; while this plugin has
        failed, its authenticators are not asked. An exception here marks this plugin
        failed; everything else goes on.

        Returns:
            The authenticators.

        Example:
            ::

                GUEST = Principal("badge", "guest", Grants({"route": ("*:read",)}))

                class Badges(Authenticator):
                    name = "badges"

                    async def authenticate(
                        self, host: Host, shown: Credentials
                    ) -> Principal | None:
                        token = shown.token.reveal().encode()
                        return GUEST if hmac.compare_digest(token, BADGE) else None

                @hookimpl
                def register_authenticator() -> Iterable[Authenticator]:
                    yield Badges()
        """

    @hookspec
    def register_command(self) -> Iterable[CommandSpec]:
        """Offer commands of ``agenthost``.

        Called by the command line, never by the daemon. An exception is reported and
        the other commands stay usable. What ``click.pass_obj`` gives to a command has
        ``home``, the folder, and ``connect()``, which asks the running daemon:
        ``get(path)``, ``post(path, body)`` and ``delete(path)`` give the answer's
        JSON, and what is refused ends the command with its reason.

        Returns:
            The click commands or groups.

        Example:
            ::

                @hookimpl
                def register_command() -> Iterable[CommandSpec]:
                    yield CommandSpec(greet)
        """

    @hookspec
    def register_chat_command(self) -> Iterable[ChatCommand]:
        """Offer commands of a chat: what a message that starts with ``/`` does.

        Called once at boot, off the event loop; a name that another plugin has taken
        marks this plugin failed. Every surface with a chat runs them, within the
        command's time; an error of agenthost is told to who gave the command, anything
        else that is raised is logged, and the plugin goes on.

        Returns:
            The commands by name, lower case and without the slash.

        Example:
            ::

                async def dice(call: ToolContext, agent: Agent, argument: str) -> str:
                    return str(1 + secrets.randbelow(int(argument or 6)))

                @hookimpl
                def register_chat_command() -> Iterable[ChatCommand]:
                    yield ChatCommand("dice", "Throw a die", dice, "<sides>")
        """

    @hookspec
    def register_card(self) -> Iterable[Card]:
        """Offer cards: what the chat page shows of a plugin.

        Called once at boot, off the event loop; a name that another plugin has taken
        marks this plugin failed. The page asks the card's path with the key of who
        looks at it and draws the JSON it gets: no script of a plugin runs there.

        Returns:
            The cards. Their paths are GET routes of the plugin, each with an answer
            ``{"text": ..., "rows": [{"label", "value"}], "links": [{"label", "url"}]}``
            in which every key may be absent.

        Example:
            ::

                @routes.get("/api/stock/card", scope="system:read")
                async def stock(call: Call) -> Answer:
                    return {"rows": [{"label": "Paper", "value": "3 boxes"}]}

                @hookimpl
                def register_card() -> Iterable[Card]:
                    yield Card("stock", "Stock", "/api/stock/card")
        """

    @hookspec
    def register_delivery(self) -> Iterable[DeliverySpec]:
        """Offer ways to deliver what came of work that nobody waited for.

        Called once at boot, off the event loop; a name that another plugin has taken
        marks this plugin failed, as an exception does. A schedule or a trigger names
        the way and its target. What ``deliver`` raises, or its time limit, is kept as
        the reason why a result was not delivered; the work itself stays done.

        Returns:
            The ways, each with a name and what delivers a parcel.

        Example:
            ::

                async def print_out(host: Host, parcel: Parcel) -> None:
                    await printer.send(parcel.target, parcel.text)

                @hookimpl
                def register_delivery() -> Iterable[DeliverySpec]:
                    yield DeliverySpec("printer", print_out)
        """

    @hookspec
    def register_channel(self) -> Iterable[ChannelSpec]:
        """Offer chat channels: ways in which people of a chat service reach agents.

        Called once at boot, off the event loop; a name that another plugin has taken
        marks this plugin failed, as an exception does. A channel is configured in
        ``[channels.<name>]`` and works while that says so; the area ``channels``
        connects it and stands between it and the agents.

        Returns:
            The channels. Nothing of a vendor's is imported before ``load`` is called.

        Example:
            ::

                def _pager() -> type[Adapter]:
                    from .pager import Pager

                    return Pager

                @hookimpl
                def register_channel() -> Iterable[ChannelSpec]:
                    yield ChannelSpec("pager", _pager)
        """
