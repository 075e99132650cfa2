"""A stream of slixmpp over a connection that the guards have let through.

slixmpp would look up, connect, and connect again by itself. Here a connection is given
to it, and its end is the end: what comes next, the bridge decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from agenthost import Unauthenticated, Unavailable
from slixmpp import ClientXMPP, Iq
from slixmpp.jid import JID
from slixmpp.plugins.xep_0198.stanza import RequestAck
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

from .config import Settings
from .wire import Streams

PLUGINS = (
    *("xep_0030", "xep_0045", "xep_0085", "xep_0198", "xep_0199"),
    *("xep_0203", "xep_0308", "xep_0313", "xep_0359", "xep_0441"),
)
SCRAM = ("SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512")
PATIENCE = 30.0
# It writes whole stanzas, and proofs of passwords, to its log of bugs.
logging.getLogger("slixmpp").setLevel(logging.CRITICAL)


class Client(ClientXMPP):
    """One stream, from login to end.

    Attributes:
        ended: Why it has ended, once it has.
        acknowledges: Whether the server tells what it has taken (XEP-0198).
    """

    def __init__(self, options: Settings, password: str) -> None:
        mechanisms = {*SCRAM, *(f"{name}-PLUS" for name in SCRAM)}
        secure = options.tls != "none"
        if options.plain and secure:
            mechanisms.add("PLAIN")
        asked = {"use_mechs": mechanisms, "unencrypted_scram": not secure}
        jid = JID(f"{options.jid}/{options.resource}")
        super().__init__(jid, password, plugin_config={"feature_mechanisms": asked})
        for name in PLUGINS:
            self.register_plugin(name)
        self.plugin["xep_0198"].allow_resume = False
        # Nobody is shown when we are there unless the operator says so elsewhere.
        self.auto_authorize = None
        self.auto_subscribe = False
        self.enable_starttls = False
        self.ended: asyncio.Future[Exception] = self.loop.create_future()
        self.acknowledges = False
        self._refusal = ""
        self._offered_nothing = False
        self._streams: Streams | None = None
        self._ready = asyncio.Event()
        self._listen()

    def _listen(self) -> None:
        hear = self.add_event_handler
        hear("failed_auth", self._refused)
        hear("no_auth", self._no_way_in)
        hear("failed_all_auth", self._shut_out)
        hear("stream_negotiated", lambda _: self._ready.set())
        hear("sm_enabled", lambda _: setattr(self, "acknowledges", True))
        hear("stream_error", self._stream_error)
        hear("disconnected", self._gone)

    def _refused(self, failure: Any) -> None:
        self._refusal = str(failure["condition"])

    def _no_way_in(self, _: Any) -> None:
        self._offered_nothing = True

    def _shut_out(self, _: Any) -> None:
        # What means that nothing was offered at all comes right after.
        self.loop.call_soon(self._tell_why)

    def _tell_why(self) -> None:
        if self._offered_nothing and not self._refusal:
            self.end(
                Unauthenticated(
                    "the XMPP server offers no SCRAM; set plain = true in"
                    " [channels.xmpp] to show it the password over TLS"
                )
            )
        elif self._refusal == "temporary-auth-failure":
            self.end(Unavailable("the XMPP server cannot look at passwords now"))
        else:
            self.end(
                Unauthenticated(
                    "the XMPP server refuses the password of this account; set"
                    " XMPP_PASSWORD, and jid in [channels.xmpp], anew"
                )
            )

    def _stream_error(self, error: Any) -> None:
        condition = str(error["condition"])
        reason = f"the XMPP server ends the stream: {condition}"
        if condition == "conflict":
            reason += (
                "; another program has the same resource: set resource in"
                " [channels.xmpp]"
            )
        self.end(Unavailable(reason))

    def _gone(self, _: Any) -> None:
        self.end(Unavailable("the XMPP server has hung up"))

    def end(self, why: Exception) -> None:
        """Let it end, for this reason if there is none yet."""
        if not self.ended.done():
            self.ended.set_result(why)

    async def _connect_loop(self) -> None:
        """Take the connection that was given instead of making one."""
        if self._streams is not None:
            transport = self._streams[1].transport
            transport.set_protocol(self)
            self.connection_made(transport)

    def hear(self, take: Callable[[Any], None]) -> None:
        """Hand each message over, as its element, in the order of the stream."""
        path = MatchXPath("{jabber:client}message")
        self.register_handler(
            Callback("agenthost", path, lambda stanza: take(stanza.xml))
        )

    async def log_in(self, streams: Streams) -> None:
        """Speak over a connection until we are somebody.

        Raises:
            Unauthenticated: The server refuses the password.
            Unavailable: It ends the stream.
        """
        self._streams = streams
        self.connect()
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            either: tuple[asyncio.Future[Any], ...] = (ready, self.ended)
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self.ended.done():
            raise self.ended.result()
        if not self.is_bound():
            raise Unavailable("the XMPP server lets nobody log in here")

    def is_bound(self) -> bool:
        """Tell whether the server has given us an address."""
        return "bind" in self.features and bool(self.boundjid.resource)

    async def ask(self, query: Iq) -> Iq:
        """Ask something, as long as there is anybody to answer.

        Raises:
            IqError: The answer is a refusal.
            IqTimeout: None comes.
            Unavailable: The stream has ended.
        """
        asking: asyncio.Future[Iq] = asyncio.ensure_future(
            query.send(timeout=PATIENCE)  # type: ignore[no-untyped-call]  # not typed
        )
        either: tuple[asyncio.Future[Any], ...] = (asking, self.ended)
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise self.ended.result()
        finally:
            asking.cancel()

    def ask_acknowledgement(self) -> None:
        """Ask, behind what was said so far, how much of it the server has."""
        self.send(RequestAck(self))

    async def close(self) -> None:
        """Say goodbye, where that still goes, and leave nothing running."""
        self.end(Unavailable("we have hung up"))
        self.cancel_connection_attempt()
        if (transport := self.transport) is not None:
            transport.write(self.stream_footer.encode())
            transport.close()
        elif self._streams is not None:
            self._streams[1].close()
        for name in list(self.scheduled_events):
            self.cancel_schedule(name)
        if (filters := self._run_out_filters) is not None:
            filters.cancel()
            await asyncio.wait([filters])
