"""What may be done to conversations, and the laws that hold whatever was done.

A :class:`Hall` holds a daemon, its model and two agents. Each method is one thing that
clients do; each ends when everything has come to rest: every agent has nothing left to
do, or its model stands still on a question that was told to wait. ``check`` then holds
what the clients came to know against what the daemon shows and stores.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from .asking import LOST, Attempt, Way
from .oracle import Manner, Oracle, Scene, answer_to
from .worlds import PATIENCE, World

MANIFEST = 'name = "{name}"\n[capabilities]\ntools = []\n'
SUMMARY = "Summary of the conversation so far:"
STATUS = {
    "cancelled": 409,
    "interrupted": 503,
    "unavailable": 503,
    "not_found": 404,
    LOST: 0,
}
ROUND_TRIPS = 3
ORPHANS = """
    select count(*) from messages where session_id not in (select id from sessions)
    union all
    select count(*) from sessions where agent_id not in (select id from agents)
"""


@dataclass(eq=False)
class Ask:
    """A question, everything that was tried to have it answered, and what may be."""

    party: Party
    text: str
    key: str | None
    scene: Scene
    number: int
    attempts: list[Attempt] = field(default_factory=list)
    may: set[str] = field(default_factory=set)
    loose: bool = False
    """Its clients have left, and it goes on."""
    gone: bool = False
    """Its conversation was cleared."""
    accepted: bool = False
    answered: bool = False
    _seen: int = 0

    @property
    def live(self) -> bool:
        """Whether the daemon works on it, or will."""
        return self.loose or any(attempt.pending for attempt in self.attempts)

    def judge(self) -> None:
        """Hold the outcomes of its attempts against what may be."""
        self.accepted |= any(attempt.started.is_set() for attempt in self.attempts)
        for attempt in self.attempts[self._seen :]:
            if attempt.task is not None and attempt.task.cancelled():
                continue
            if not attempt.pending:
                self._judge(attempt)
        self._seen = next(
            (n for n, each in enumerate(self.attempts) if each.pending),
            len(self.attempts),
        )

    def _judge(self, attempt: Attempt) -> None:
        found = attempt.outcome
        told = f"{self.text} over {attempt.way}: {found}"
        if found.done:
            assert found.text == answer_to(self.text), f"another's answer: {told}"
            self.accepted = self.answered = True
            return
        assert answer_to(self.text).startswith(found.text), f"other words: {told}"
        if self.scene.manner in {Manner.REFUSES, Manner.BREAKS}:
            ours = {*STATUS, "internal", "turn_failed", "conflict", "no code"}
            if found.code not in ours:
                return
        assert found.code in self.may, f"not to be expected: {told}"
        if attempt.way is Way.BLOCKING:
            assert found.status == STATUS[found.code], told
            if found.code == "interrupted":
                assert found.facts["turn_id"], told


@dataclass(eq=False)
class Party:
    """An agent, and the conversation as far as it is known."""

    id: str
    name: str
    asks: list[Ask] = field(default_factory=list)
    history: list[Ask] = field(default_factory=list)
    chores: list[asyncio.Task[int]] = field(default_factory=list)
    chores_may: set[int] = field(default_factory=lambda: {200})

    @property
    def path(self) -> str:
        """Where it is found."""
        return f"/api/agents/{self.id}"

    @property
    def live(self) -> list[Ask]:
        """What it has left to answer, in order of arrival."""
        return sorted((a for a in self.asks if a.live), key=lambda ask: ask.number)

    @property
    def front(self) -> Ask | None:
        """The question that its model stands still on."""
        return next((ask for ask in self.live if ask.scene.waiting), None)


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
        self._database = home / "data/agenthost.db"
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
            ask.accepted |= attempt.started.is_set()
            await attempt.leave()
        if ask.key is None and attempts[0].way is Way.SSE:
            if running:
                await _soon(ask.scene.left.is_set, f"{ask.text} outlives its client")
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
            await _soon(lambda: not front.live, f"{front.text} was stopped and lives")
            for attempt in ended:
                assert attempt.outcome.code == "cancelled", attempt.outcome
            front.scene.release()
        await self.rest()

    async def reset(self, party: Party) -> None:
        """Clear the conversation; whoever waits is told that it was cancelled."""
        before = self._forgive(party, "cancelled")
        answer = await self.world.http.post(f"{party.path}/session/reset")
        assert answer.status_code == 200, f"reset: {answer.text}"
        await _soon(lambda: not any(a.live for a in before), "outlives the reset")
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
        await _soon(lambda: not any(a.live for a in (*before, ask)), told)
        ask.judge()
        ask.accepted = False  # It may have been cleared by the later one.
        self._clear(party, before)
        party.asks.append(ask)
        await self.rest()

    async def delete(self, party: Party) -> None:
        """Delete the agent; another takes its place."""
        before = self._forgive(party, "cancelled", "not_found")
        answer = await self.world.http.delete(party.path)
        assert answer.status_code == 200, answer.text
        await _soon(lambda: not any(a.live for a in before), "outlives its agent")
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
        await _soon(lambda: not any(ask.live for ask in ended), "outlives the daemon")
        for ask in ended:
            ask.judge()
            ask.may = told[ask]
            ask.scene.release()
        await self.world.start()
        await self.rest()

    async def rest(self) -> None:
        """Wait until nothing moves any more."""
        for party in self.parties:
            await _soon(
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
            self._check_view(party, (await self._session(party))["messages"])
        self._check_heard()
        await self._check_rows()

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
            ask.gone, ask.accepted, ask.may = True, False, {*ask.may, "cancelled"}
        party.history.clear()

    def _rests(self, party: Party) -> bool:
        for ask in party.live:
            if not ask.loose:
                continue
            left = ask.scene.left.is_set() and "cancelled" not in ask.may
            assert not left, f"{ask.text} ended with its client"
            failing = ask.scene.manner in {Manner.REFUSES, Manner.BREAKS}
            if ask.scene.answered.is_set():
                ask.loose = not (failing or self._stored(ask.text).get("assistant"))
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

    def _check_view(self, party: Party, shown: list[dict[str, Any]]) -> None:
        """The conversation only grows, and each answer stands behind its question."""
        by_text = {ask.text: ask for ask in party.asks}
        cut = bool(shown) and shown[0]["content"].startswith(SUMMARY)
        seen: list[Ask] = []
        answers: dict[Ask, str] = {}
        for message in shown[cut:]:
            if message["role"] == "User":
                ask = by_text.get(message["content"])
                assert ask is not None, f"whose message is {message}?"
                assert ask not in seen, f"stored twice: {ask.text}"
                seen.append(ask)
            elif seen:
                assert seen[-1] not in answers, f"answered twice: {seen[-1].text}"
                answers[seen[-1]] = message["content"]
        told = [f"{ask.number} {ask.text}" for ask in seen]
        known = [ask for ask in seen if ask in party.history]
        kept = party.history[len(party.history) - len(known) :]
        assert known == (kept if cut else party.history), f"lost or moved: {told}"
        fresh = seen[len(known) :]
        assert known == seen[: len(known)], f"put before older ones: {told}"
        assert fresh == sorted(fresh, key=lambda ask: ask.number), f"order: {told}"
        party.history += fresh
        for ask, said in answers.items():
            right = answer_to(ask.text)
            fits = said == right if ask.answered else right.startswith(said)
            assert fits, f"{ask.text} is stored with {said!r}"
        for ask in party.asks:
            stored = ask in party.history or ask.gone
            assert stored or not ask.accepted, f"accepted and lost: {ask.text}"
            if ask in seen and ask.answered:
                assert ask in answers, f"its answer is lost: {ask.text}"

    def _check_heard(self) -> None:
        """The model hears each question once, in the order of the conversation."""
        by_text = {ask.text: ask for ask in self.asks}
        for said in self.oracle.heard[self._judged :]:
            assert len(set(said)) == len(said), f"the model hears twice: {said}"
            asks = [by_text[text] for text in said if text in by_text]
            for party in {ask.party for ask in asks}:
                places = [
                    party.history.index(ask) for ask in asks if ask in party.history
                ]
                assert places == sorted(places), f"the model hears {said}"
        self._judged = len(self.oracle.heard)

    async def _check_rows(self) -> None:
        """No row is left running when nothing runs; none is there twice or alone."""
        if not any(party.live or party.chores for party in self.parties):
            await _soon(lambda: not self._rows(RUNNING)[0][0], "a row stays running")
        assert not any(count for (count,) in self._rows(ORPHANS)), "orphans"
        for ask in self.asks:
            assert self._stored(ask.text).get("user", 0) <= 1, f"twice: {ask.text}"

    def _stored(self, text: str) -> dict[str, int]:
        """Count complete messages that hold this question or its answer, by role."""
        return {str(role): int(n) for role, n in self._rows(STORED, f'%{text}"%')}

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        url = f"file:{self._database}?mode=ro"
        with closing(sqlite3.connect(url, uri=True, timeout=5)) as connection:
            return connection.execute(query, values).fetchall()


RUNNING = "select count(*) from turns where state = 'running'"
STORED = """
    select role, count(*) from messages where parts like ? and partial = 0
    and parts not like '%Summar%' group by role
"""


async def _soon(done: Callable[[], bool], told: str | Callable[[], str]) -> None:
    """Wait until it is so; a turn that never ends is a broken law."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not done():
        words = told if isinstance(told, str) else told()
        assert loop.time() < deadline, f"after {PATIENCE:g} s: {words}"
        await asyncio.sleep(0.002)


__all__ = ["Ask", "Hall", "Party", "httpx"]
