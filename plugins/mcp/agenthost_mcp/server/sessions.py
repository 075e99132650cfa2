"""Sessions of the revisions before 2026: bounded, each its principal's own."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from secrets import token_urlsafe

from agenthost import Clock, JsonObject, Principal

from . import rpc
from .link import ClientNeeded, Link

MOST = 4_096
MOST_OF_ONE = 256
MOST_LISTENERS = 64
IDLE_SECONDS = 3_600.0
MOST_SUBSCRIPTIONS = 256
ANSWER_SECONDS = 600.0


class Session:
    """What one client said when it began, and what is open for it.

    Attributes:
        calls: What cancels its requests, by their ids.
        questions: What it was asked and has not answered yet.
        subscribed: The resources whose changes it wants to hear of.
        listening: Whether its stream is open.
    """

    def __init__(self, owner: str, version: str, capabilities: JsonObject) -> None:
        self.id = token_urlsafe(24)
        self.owner, self.version, self.capabilities = owner, version, capabilities
        self.level = "info"
        self.used = 0.0
        self.calls: dict[rpc.Id, Callable[[], object]] = {}
        self.questions: dict[str, asyncio.Future[JsonObject]] = {}
        self.subscribed: set[str] = set()
        self.listening = False
        self.ended = asyncio.Event()

    def end(self) -> None:
        """Cancel what is open for it."""
        self.ended.set()
        for cancel in tuple(self.calls.values()):
            cancel()

    def answered(self, answer: JsonObject, number: rpc.Id | None) -> None:
        """Take an answer of the client; one that nobody waits for is passed over."""
        question = self.questions.pop(str(number), None)
        if question is not None and not question.done():
            question.set_result(answer)


class Sessions:
    """The sessions of one daemon; where there are too many, the idlest gives way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # By use, the idlest first; and those of each principal by their beginning.
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._owned: dict[str, dict[str, Session]] = {}
        self._listeners: set[object] = set()

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def begin(self, who: Principal, version: str, capabilities: JsonObject) -> Session:
        """Open one."""
        self._forget_idle()
        session = Session(owner_of(who), version, capabilities)
        own = self._owned.get(session.owner, {})
        if len(own) >= MOST_OF_ONE:
            self.end(next(iter(own.values())))
        elif len(self._open) >= MOST:
            self.end(next(iter(self._open.values())))
        session.used = self._clock.monotonic()
        self._open[session.id] = session
        self._owned.setdefault(session.owner, {})[session.id] = session
        return session

    def find(self, number: str, who: Principal) -> Session:
        """Find a session of the principal's own.

        Raises:
            RpcError: There is none, or it is somebody else's.
        """
        self._forget_idle()
        session = self._open.get(number)
        if session is None or session.owner != owner_of(who):
            told = "the session has ended or never was; initialize anew"
            raise rpc.RpcError(rpc.INVALID_REQUEST, told, status=404)
        session.used = self._clock.monotonic()
        self._open.move_to_end(number)
        return session

    def listen(self) -> Callable[[], object]:
        """Take a listener's place: what has changed is looked at for each.

        Returns:
            What gives it back; calling it twice is fine.

        Raises:
            RpcError: All are taken.
        """
        if len(self._listeners) >= MOST_LISTENERS:
            told = f"{MOST_LISTENERS} clients listen already; ask for lists instead"
            raise rpc.RpcError(rpc.INVALID_REQUEST, told, status=409)
        place = object()
        self._listeners.add(place)
        return lambda: self._listeners.discard(place)

    def end(self, session: Session) -> None:
        """End one; its id is nobody's from now on."""
        del self._open[session.id]
        own = self._owned[session.owner]
        del own[session.id]
        if not own:
            del self._owned[session.owner]
        session.end()

    def _forget_idle(self) -> None:
        ends = self._clock.monotonic() - IDLE_SECONDS
        while self._open:
            idlest = next(iter(self._open.values()))
            if idlest.used > ends:
                return
            if idlest.listening or idlest.calls:
                idlest.used = self._clock.monotonic()
                self._open.move_to_end(idlest.id)
                continue
            self.end(idlest)


class SessionLink(Link):
    """The client of a session: it is asked by requests of the server's own."""

    def __init__(self, session: Session, params: JsonObject) -> None:
        super().__init__()
        self.capabilities = session.capabilities
        self.level = session.level
        self.session = session
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, Mapping) else None
        self.token = token if isinstance(token, str | int) else None

    async def _asked(
        self, requests: Mapping[str, JsonObject], state: str
    ) -> Mapping[str, JsonObject]:
        self.state = state
        return {name: await self._put(each) for name, each in requests.items()}

    async def _put(self, request: JsonObject) -> JsonObject:
        if self.tell is None:
            told = "it asks its client, which takes no event stream; accept one"
            raise self._fail(rpc.RpcError(rpc.INVALID_REQUEST, told))
        number = f"ask-{token_urlsafe(9)}"
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self.session.questions[number] = answer
        try:
            self.tell({"jsonrpc": "2.0", "id": number, **request})
            async with asyncio.timeout(ANSWER_SECONDS):
                said = await answer
        finally:
            self.session.questions.pop(number, None)
        result = said.get("result")
        if not isinstance(result, Mapping):
            raise ClientNeeded("the client answered what it was asked with an error")
        return result


def owner_of(who: Principal) -> str:
    """Who a session belongs to."""
    return f"{who.kind}:{who.name}"
