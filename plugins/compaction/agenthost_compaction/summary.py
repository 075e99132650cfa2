"""Compaction: a summary stands for the older messages, which all stay in the store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing

from agenthost import (
    OPERATOR,
    Agent,
    AgentHostError,
    AgentView,
    Answered,
    ChatRequest,
    Condensed,
    Context,
    Conversation,
    File,
    Host,
    Message,
    Observers,
    Payer,
    ProviderError,
    ProviderFault,
    Role,
    Session,
    Target,
    Text,
    ToolOutput,
    ToolUse,
    TurnState,
)

from .settings import CompactionSection

log = logging.getLogger(__name__)

SUMMARY_TOKENS = 1_024
PART_CHARACTERS = 2_000

SYSTEM = (
    "You condense conversations. Keep names, decisions, facts, open questions and "
    "unfinished tasks; leave out pleasantries. Answer with the summary alone."
)
REQUEST = "Summarize this conversation:\n\n"
PREFIX = "Summary of the conversation so far:\n\n"


class SummaryCompaction:
    """Lets the agent's own model summarise the older messages."""

    def __init__(self, host: Host, observers: Observers) -> None:
        self._observers = observers
        self._host = host

    async def before_turn(
        self, conversation: Conversation, target: Target, context: Context
    ) -> bool:
        """Condense when the message count or the model's window asks for it.

        A summary that fails leaves the session as it is: the turn goes on and may fail
        at the provider, which is better than losing what was said.
        """
        settings = self._host.settings(CompactionSection)
        count, session = len(conversation.messages), conversation.session
        room = settings.threshold_ratio * target.model.context_window
        few = count <= settings.threshold_messages or (
            # Whoever took a summary back is not given it again at once.
            session.undone_at > 0
            and session.next_seq - session.undone_at <= settings.threshold_messages
        )
        small = few and conversation.tokens <= room
        if count <= settings.keep_recent or small:
            return False
        return await self._tried(session, target, context)

    async def make_room(
        self, session: Session, target: Target, context: Context
    ) -> bool:
        """Condense all that was said before the turn of the context, however short."""
        return await self._tried(session, target, context, context.turn_id)

    async def _tried(
        self,
        session: Session,
        target: Target,
        context: Context,
        until: str | None = None,
    ) -> bool:
        try:
            done = await self._condense(session, target, context, until)
        except AgentHostError as error:
            log.warning("session %s not compacted: %s", session.id, error.message)
            return False
        return done.summarised > 0

    async def of_agent(self, agent: Agent, session_id: str = "") -> Condensed:
        """Compact a session of an agent, its own by default, when it is long enough.

        Raises:
            Cancelled: It was stopped.
        """
        host = self._host

        async def work(session_id: str) -> Condensed:
            session = await host.sessions.get(session_id)
            target = host.agents.target_of(agent)
            count = session.next_seq - session.first_seq
            if count <= host.settings(CompactionSection).threshold_messages:
                return Condensed(summarised=0, kept=count)
            view = AgentView(agent.id, agent.name, agent.manifest, session.id)
            context = Context(OPERATOR, agent=view)
            return await self._condense(session, target, context)

        return await host.turns.apart(agent, work, session_id)

    async def _condense(
        self,
        session: Session,
        target: Target,
        context: Context,
        until: str | None = None,
    ) -> Condensed:
        """Condense all but the recent messages, or all before a turn's first."""
        entries = await self._host.sessions.entries(session)
        said = [entry.message for entry in entries]
        keep = self._host.settings(CompactionSection).keep_recent
        if until is not None:
            spoke = (i for i, each in enumerate(entries) if each.turn_id == until)
            keep = len(said) - next(spoke, 0)
        cut = safe_cut(said, keep)
        turns = await self._host.sessions.turns(session.id)
        # A turn that waits for a person goes on from its own messages.
        waits = (turns.get(each.turn_id or "") for each in entries)
        open_ = (i for i, t in enumerate(waits) if t and t.state is TurnState.WAITING)
        cut = min(cut, next(open_, cut))
        if cut == 0:
            return Condensed(summarised=0, kept=len(said))
        older = [session.summary] if session.summary else []
        assert context.agent is not None  # noqa: S101 - it is the agent's session
        name = f"compaction:{session.id}"
        payer = Payer(context.agent, name, context.pools, context=context)
        request = _request(target, older + said[:cut])
        watch = self._observers.watch(context, request, target, payer.failed)
        with watch as seen:
            answer = await self._ask(target, request, payer)
            if seen is not None:
                seen.result, seen.spent = answer.completion, answer.spent
                seen.answered = answer
        text = PREFIX + answer.completion.message.text
        summary = Message(Role.USER, (Text(text),))
        await self._host.sessions.compact(
            session, entries[cut].seq, summary, answer.spent
        )
        return Condensed(summarised=cut, kept=len(said) - cut)

    async def _ask(
        self, target: Target, request: ChatRequest, payer: Payer
    ) -> Answered:
        stream = self._host.models.stream(target, request, payer)
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                if isinstance(delta, Answered):
                    if delta.completion.message.text:
                        return delta
                    await self._host.usage.book(delta.spent)
        raise ProviderError(
            ProviderFault.MALFORMED,
            target.provider.facts.slug,
            "the summary came back empty",
        )


def _request(target: Target, older: list[Message]) -> ChatRequest:
    transcript = "\n".join(map(_line, older))[-target.model.context_window * 2 :]
    return ChatRequest(
        model=target.model.upstream_id,
        system=SYSTEM,
        messages=(Message(Role.USER, (Text(REQUEST + transcript),)),),
        max_tokens=SUMMARY_TOKENS,
        temperature=0.3,
    )


def _line(message: Message) -> str:
    words = []
    for part in message.parts:
        match part:
            case Text(text):
                words.append(text)
            case File(name):
                words.append(f"[file {name}]")
            case ToolUse(_, name, arguments):
                words.append(f"[calls {name} {str(dict(arguments))[:200]}]")
            case ToolOutput(_, name, text):
                words.append(f"[{name} answers: {text[:PART_CHARACTERS]}]")
    return f"{message.role.value}: {' '.join(words)}"


def safe_cut(history: Sequence[Message], keep: int) -> int:
    """Return the index from which at most ``keep`` messages stay, at a user message.

    A cut never separates a call from its result: it moves back to the user message
    that began the exchange.
    """
    index = max(len(history) - keep, 0)
    while 0 < index < len(history) and history[index].role is not Role.USER:
        index -= 1
    return index
