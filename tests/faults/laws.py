"""The laws of a conversation, held against what is shown, heard and stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from .oracle import answer_to
from .parties import Ask, Party

SUMMARY = "Summary of the conversation so far:"
RUNNING = "select count(*) from turns where state = 'running'"
ORPHANS = """
    select count(*) from messages where session_id not in (select id from sessions)
    union all
    select count(*) from sessions where agent_id not in (select id from agents)
"""
STORED = """
    select role, count(*) from messages where parts like ? and partial = 0
    and parts not like '%Summar%' group by role
"""


def check_view(party: Party, shown: Sequence[Mapping[str, Any]]) -> None:
    """The conversation only grows, and each answer stands behind its question."""
    cut = bool(shown) and shown[0]["content"].startswith(SUMMARY)
    seen, answers = _read(party, shown[cut:])
    told = [f"{ask.number} {ask.text}" for ask in seen]
    known = [ask for ask in seen if ask in party.history]
    kept = party.history[len(party.history) - len(known) :]
    assert known == (kept if cut else party.history), f"lost or moved: {told}"
    assert known == seen[: len(known)], f"put before older ones: {told}"
    fresh = seen[len(known) :]
    assert fresh == sorted(fresh, key=lambda ask: ask.number), f"order: {told}"
    party.history += fresh
    for ask, said in answers.items():
        right = answer_to(ask.text)
        fits = said == right if ask.answered else right.startswith(said)
        assert fits, f"{ask.text} is stored with {said!r}"
    for ask in party.asks:
        stored = ask in party.history or ask.gone
        assert stored or not ask.accepted, f"accepted and lost: {ask.text}"
        kept_whole = ask in answers or ask not in seen
        assert kept_whole or not ask.answered, f"its answer is lost: {ask.text}"


def _read(
    party: Party, shown: Sequence[Mapping[str, Any]]
) -> tuple[list[Ask], dict[Ask, str]]:
    by_text = {ask.text: ask for ask in party.asks}
    seen: list[Ask] = []
    answers: dict[Ask, str] = {}
    for message in shown:
        if message["role"] == "User":
            ask = by_text.get(message["content"])
            assert ask is not None, f"whose message is {message}?"
            assert ask not in seen, f"stored twice: {ask.text}"
            seen.append(ask)
        elif seen:
            assert seen[-1] not in answers, f"answered twice: {seen[-1].text}"
            answers[seen[-1]] = message["content"]
    return seen, answers


def check_heard(asks: Sequence[Ask], heard: Sequence[tuple[str, ...]]) -> None:
    """The model hears each question once, in the order of the conversation."""
    by_text = {ask.text: ask for ask in asks}
    for said in heard:
        assert len(set(said)) == len(said), f"the model hears twice: {said}"
        known = [by_text[text] for text in said if text in by_text]
        for party in {ask.party for ask in known}:
            history = party.history
            places = [history.index(ask) for ask in known if ask in history]
            assert places == sorted(places), f"the model hears {said}"


class Rows:
    """What stands in the daemon's database."""

    def __init__(self, database: Path) -> None:
        self._url = f"file:{database}?mode=ro"

    def running(self) -> int:
        """Count turns that have not ended."""
        return int(self._select(RUNNING)[0][0])

    def check(self, asks: Sequence[Ask]) -> None:
        """Nothing is stored twice, or belongs to nobody."""
        orphans = [count for (count,) in self._select(ORPHANS)]
        assert not any(orphans), f"messages and sessions of nobody: {orphans}"
        for ask in asks:
            assert self.stored(ask.text).get("user", 0) <= 1, f"twice: {ask.text}"

    def stored(self, text: str) -> dict[str, int]:
        """Count complete messages that hold this question or its answer, by role."""
        rows = self._select(STORED, f'%{text}"%')
        return {str(role): int(count) for role, count in rows}

    def _select(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._url, uri=True, timeout=5)) as connection:
            return connection.execute(query, values).fetchall()
