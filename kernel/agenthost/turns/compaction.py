"""Compaction: a summary stands for the older messages, which all stay in the store."""

from __future__ import annotations

import logging
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..chat import ChatRequest, Message, Role, Text, ToolOutput, ToolUse
from ..errors import AgentHostError, ProviderError, ProviderFault
from ..history import estimate_tokens, repaired, safe_cut
from ..model_port import Answered, Payer, Target
from ..record_port import Session
from .prompt import COMPACTION_REQUEST, COMPACTION_SYSTEM, SUMMARY_PREFIX

if TYPE_CHECKING:
    from ..daemon import Daemon

log = logging.getLogger(__name__)

SUMMARY_TOKENS = 1_024
PART_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction did: how many messages it summarised and kept."""

    compacted: bool
    summarised: int
    kept: int


class Compaction:
    """Decides when a session is too long and condenses it."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def before_turn(
        self, session: Session, history: list[Message], target: Target, payer: Payer
    ) -> tuple[Session, list[Message]]:
        """Compact when the message count or the model's window asks for it.

        A summary that fails leaves the session as it is: the turn goes on and may fail
        at the provider, which is better than losing what was said.
        """
        settings = self._daemon.config.compaction
        if len(history) <= settings.keep_recent:
            return session, history
        room = settings.threshold_ratio * target.model.context_window
        if (
            len(history) <= settings.threshold_messages
            and estimate_tokens(history) <= room
        ):
            return session, history
        try:
            outcome = await self._compact(session, target, payer)
        except AgentHostError as error:
            log.warning("session %s not compacted: %s", session.id, error.message)
            return session, history
        if not outcome.compacted:
            return session, history
        session = await self._daemon.sessions.get(session.id)
        return session, repaired(await self._daemon.sessions.history(session))

    async def by_count(self, session: Session, target: Target, payer: Payer) -> Outcome:
        """Compact when there are more messages than the threshold."""
        count = session.next_seq - session.first_seq
        if count <= self._daemon.config.compaction.threshold_messages:
            return Outcome(compacted=False, summarised=0, kept=count)
        return await self._compact(session, target, payer)

    async def _compact(self, session: Session, target: Target, payer: Payer) -> Outcome:
        history = await self._daemon.sessions.history(session)
        summaries = 1 if session.summary else 0
        said = history[summaries:]
        cut = safe_cut(said, self._daemon.config.compaction.keep_recent)
        if cut == 0:
            return Outcome(compacted=False, summarised=0, kept=len(said))
        payer = replace(payer, turn_id=f"compaction:{session.id}")
        answer = await self._summary(target, history[: summaries + cut], payer)
        text = SUMMARY_PREFIX + answer.completion.message.text
        summary = Message(Role.USER, (Text(text),))
        await self._daemon.sessions.compact(
            session.id, session.first_seq + cut, summary, answer.spent
        )
        return Outcome(compacted=True, summarised=cut, kept=len(said) - cut)

    async def _summary(
        self, target: Target, older: list[Message], payer: Payer
    ) -> Answered:
        characters = target.model.context_window * 2
        transcript = "\n".join(map(_line, older))[-characters:]
        request = ChatRequest(
            model=target.model.upstream_id,
            system=COMPACTION_SYSTEM,
            messages=(Message(Role.USER, (Text(COMPACTION_REQUEST + transcript),)),),
            max_tokens=SUMMARY_TOKENS,
            temperature=0.3,
        )
        stream = self._daemon.models.stream(target, request, payer)
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                if isinstance(delta, Answered):
                    if delta.completion.message.text:
                        return delta
                    await self._daemon.usage.book(delta.spent)
        raise ProviderError(
            ProviderFault.MALFORMED,
            target.provider.facts.slug,
            "the summary came back empty",
        )


def _line(message: Message) -> str:
    words = []
    for part in message.parts:
        match part:
            case Text(text):
                words.append(text)
            case ToolUse(_, name, arguments):
                words.append(f"[calls {name} {str(dict(arguments))[:200]}]")
            case ToolOutput(_, name, text):
                words.append(f"[{name} answers: {text[:PART_CHARACTERS]}]")
    return f"{message.role.value}: {' '.join(words)}"
