"""What may be done to conversations, and the laws that hold whatever was done.

A :class:`Hall` holds a daemon, its model and two agents. Each method is one thing that
clients do; each ends when everything has come to rest: every agent has nothing left to
do, or its model stands still on a question that was told to wait. ``check`` then holds
what the clients came to know against what the daemon shows and stores.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from .asking import LOST, Attempt, Way
from .laws import Rows, check_heard, check_view
from .oracle import Manner, Oracle, Scene
from .parties import FAILING, Ask, Party
from .waiting import PATIENCE, soon
from .worlds import World

MANIFEST = 'name = "{name}"\n[capabilities]\ntools = []\n'
ROUND_TRIPS = 3


class Hall:
    """A daemon, its model, two agents, and those who speak to them."""

    def __init__(self, world: Callable[[Path, str], World]) -> None:
        self._make_world = world
        self._folder = tempfile.TemporaryDirectory(prefix="laws")
        self.oracle = Oracle()
        self.parties: list[Party] = []
        self._count = 0
        self._judged = 0

    async def open(self) -> Self:
        """Start everything."""
        await self.oracle.__aenter__()
        home = Path(self._folder.name) / "home"
        self._rows = Rows(home / "data/agenthost.db")
        self.world = self._make_world(home, self.oracle.config)
        await self.world.start()
        self.parties = [await self._new_party() for _ in range(2)]
        return self

    async def close(self) -> None:
        """End everything; nothing is held against anybody."""
        for ask in self.asks:
            ask.scene.release()
        await self.world.end()
        tasks = [a.task for ask in self.asks for a in ask.attempts if a.task]
        chores = [task for party in self.parties for task in party.chores]
        for task in (*tasks, *chores):
            task.cancel()
        await asyncio.gather(*tasks, *chores, return_exceptions=True)
        await self.world.http.aclose()
        await self.oracle.__aexit__(None, None, None)
        self._folder.cleanup()

    @property
    def asks(self) -> list[Ask]:
        """Everything that was asked of those who are there."""
        return [ask for party in self.parties for ask in party.asks]

    async def ask(
        self, party: Party, way: Way, manner: Manner, *, keyed: bool = False
    ) -> None:
        """Ask something new."""
        self._count += 1
        text = f"question {self._count:05}"
        key = f"key {self._count}" if keyed and way is not Way.SOCKET else None
        scene = self.oracle.scenes[text] = Scene(manner)
        ask = Ask(party, text, key, scene, self._count)
        party.asks.append(ask)
        await self._attempt(ask, way)
        await self.rest()

    async def again(self, ask: Ask, way: Way, manner: Manner) -> None:
        """Ask the same with the same key, while the first runs or when it ended."""
        asked, answered = self.oracle.asked[ask.text], ask.answered and not ask.gone
        if not ask.live:
            ask.scene = self.oracle.scenes[ask.text] = Scene(manner)
            if ask not in ask.party.history:
                self._count += 1
                ask.number = self._count
        ask.gone = False
        await self._attempt(ask, way)
        await self.rest()
        if answered:
            assert self.oracle.asked[ask.text] == asked, f"asked twice: {ask.text}"

    async def mismatch(self, ask: Ask) -> None:
        """Ask something else with a key that is taken."""
        answer = await self.world.http.post(
            f"{ask.party.path}/message",
            json={"message": f"not {ask.text}"},
            headers={"Idempotency-Key": str(ask.key)},
        )
        assert answer.status_code == 422, f"a key of another body: {answer.text}"
        assert answer.json()["code"] == "idempotency_mismatch"

    async def leave(self, ask: Ask) -> None:
        """Let all its clients go away in the middle."""
        running = ask.scene.waiting
        attempts = [attempt for attempt in ask.attempts if attempt.pending]
        for attempt in attempts:
            await attempt.leave()
        if ask.key is None and attempts[0].way is Way.SSE:
            if running:
                await soon(ask.scene.left.is_set, f"{ask.text} outlives its client")
            await self._settle()
            ask.scene.release()
        else:
            await self._settle()
            ask.loose = True
        await self.rest()

    async def release(self, party: Party) -> None:
        """Let the model go on where it stands still."""
        if party.front is not None:
            party.front.scene.release()
        await self.rest()

    async def stop(self, party: Party) -> None:
        """Stop what the agent says now; what waits behind it runs next."""
        front = party.front
        if front is not None:
            front.may.add("cancelled")
            front.loose = False
        answer = await self.world.http.post(f"{party.path}/stop")
        assert answer.status_code == 200, answer.text
        if front is not None:
            ended = [attempt for attempt in front.attempts if attempt.pending]
            await soon(lambda: not front.live, f"{front.text} was stopped and lives")
            for attempt in ended:
                assert attempt.outcome.code == "cancelled", attempt.outcome
            front.scene.release()
        await self.rest()

    async def reset(self, party: Party) -> None:
        """Clear the conversation; whoever waits is told that it was cancelled."""
        before = self._forgive(party, "cancelled")
        answer = await self.world.http.post(f"{party.path}/session/reset")
        assert answer.status_code == 200, f"reset: {answer.text}"
        await soon(lambda: not any(a.live for a in before), "outlives the reset")
        session = await self._session(party)
        assert session["session_id"] == answer.json()["new_session_id"]
        assert not session["messages"], "a session is not empty after its reset"
        self._clear(party, before)
        await self.rest()

    async def storm(self, party: Party) -> None:
        """Reset twice, look and ask, all at once; a living agent is always there."""
        before = self._forgive(party, "cancelled")
        self._count += 1
        text = f"question {self._count:05}"
        scene = self.oracle.scenes[text] = Scene(Manner.SAYS)
        ask = Ask(party, text, None, scene, self._count, may={"cancelled"})
        http, path = self.world.http, party.path
        reset = f"{path}/session/reset"
        calls = http.post(reset), http.get(f"{path}/session"), http.post(reset)
        answers = asyncio.gather(*calls)
        attempt = Attempt(Way.BLOCKING)
        ask.attempts.append(attempt)
        attempt.go(http, party.id, text)
        for answer in await answers:
            assert answer.status_code == 200, f"{answer.request.url}: {answer.text}"
        told = "a question outlives two resets"
        await soon(lambda: not any(a.live for a in (*before, ask)), told)
        self._clear(party, before)
        ask.judge()
        ask.accepted = False  # It may have been cleared by the later reset.
        party.asks.append(ask)
        await self.rest()

    async def delete(self, party: Party) -> None:
        """Delete the agent; another takes its place."""
        before = self._forgive(party, "cancelled", "not_found")
        answer = await self.world.http.delete(party.path)
        assert answer.status_code == 200, answer.text
        await soon(lambda: not any(a.live for a in before), "outlives its agent")
        for ask in before:
            ask.judge()
        await asyncio.wait_for(asyncio.gather(*party.chores), PATIENCE)
        answer = await self.world.http.get(f"{party.path}/session")
        assert answer.status_code == 404, answer.text
        self._clear(party, before)
        self.parties[self.parties.index(party)] = await self._new_party()
        await self.rest()

    async def compact(self, party: Party) -> None:
        """Have the older messages summarised, now or when it is their turn."""

        async def call() -> int:
            answer = await self.world.http.post(f"{party.path}/session/compact")
            return answer.status_code

        party.chores.append(asyncio.create_task(call()))
        await self._settle()
        await self.rest()

    async def end_and_start(self) -> None:
        """End the daemon while it speaks, and start it on what is left."""
        ended = [ask for ask in self.asks if ask.live]
        codes = {LOST} if self.world.kills else {LOST, "interrupted", "unavailable"}
        told = {ask: set(ask.may) for ask in ended}
        for ask in ended:
            ask.may |= codes
            ask.loose = False
        for party in self.parties:
            for chore in party.chores:
                chore.cancel()
            await asyncio.gather(*party.chores, return_exceptions=True)
            party.chores.clear()
        await self.world.end()
        await soon(lambda: not any(ask.live for ask in ended), "outlives the daemon")
        for ask in ended:
            ask.judge()
            ask.may = told[ask]
            ask.scene.release()
        await self.world.start()
        await self.rest()

    async def rest(self) -> None:
        """Wait until nothing moves any more."""
        for party in self.parties:
            await soon(
                lambda party=party: self._rests(party),  # type: ignore[misc]
                lambda party=party: f"no end of {[a.text for a in party.live]}",  # type: ignore[misc]
            )
        await self.check()

    async def check(self) -> None:
        """Hold every law."""
        for party in self.parties:
            for ask in party.asks:
                ask.judge()
            for chore in [chore for chore in party.chores if chore.done()]:
                assert chore.result() in party.chores_may, f"compact: {chore.result()}"
                party.chores.remove(chore)
        await self._check_sessions()
        for party in self.parties:
            check_view(party, (await self._session(party))["messages"])
        check_heard(self.asks, self.oracle.heard[self._judged :])
        self._judged = len(self.oracle.heard)
        if not any(party.live or party.chores for party in self.parties):
            await soon(lambda: not self._rows.running(), "a row stays running")
        self._rows.check(self.asks)

    def _forgive(self, party: Party, *codes: str) -> list[Ask]:
        """Whatever the agent has to do may now end like this."""
        party.chores_may |= {404, 409}
        before = party.live
        for ask in before:
            ask.may |= set(codes)
            ask.loose = False
        return before

    def _clear(self, party: Party, before: Iterable[Ask]) -> None:
        for ask in before:
            ask.scene.release()
        for ask in party.asks:
            ask.judge()
            ask.forget()
        party.history.clear()

    def _rests(self, party: Party) -> bool:
        for ask in party.live:
            if not ask.loose:
                continue
            left = ask.scene.left.is_set() and "cancelled" not in ask.may
            assert not left, f"{ask.text} ended with its client"
            failing = ask.scene.manner in FAILING
            if ask.scene.answered.is_set():
                ask.loose = not (
                    failing or self._rows.stored(ask.text).get("assistant")
                )
        if party.front is not None:
            return True
        return not party.live and all(chore.done() for chore in party.chores)

    async def _attempt(self, ask: Ask, way: Way) -> None:
        attempt = Attempt(way, ask.key)
        ask.attempts.append(attempt)
        attempt.go(self.world.http, ask.party.id, ask.text)
        await asyncio.wait_for(attempt.sent.wait(), PATIENCE)
        await self._settle()

    async def _settle(self) -> None:
        """Let the daemon take notice of what was sent or closed before."""
        for _ in range(ROUND_TRIPS):
            answer = await self.world.http.get("/api/health")
            assert answer.status_code == 200, answer.text

    async def _new_party(self) -> Party:
        self._count += 1
        name = f"agent{self._count}"
        answer = await self.world.http.post(
            "/api/agents", json={"manifest_toml": MANIFEST.format(name=name)}
        )
        assert answer.status_code == 201, answer.text
        return Party(answer.json()["agent_id"], name)

    async def _session(self, party: Party) -> dict[str, Any]:
        answer = await self.world.http.get(f"{party.path}/session")
        assert answer.status_code == 200, f"{answer.status_code}: {answer.text}"
        return dict(answer.json())

    async def _check_sessions(self) -> None:
        """Every agent has its one session, and there is no other."""
        answer = await self.world.http.get("/api/sessions")
        listed = {row["id"]: row["agent_id"] for row in answer.json()["sessions"]}
        wanted = {(await self._session(p))["session_id"]: p.id for p in self.parties}
        assert listed == wanted, "sessions without an agent"
