"""Events of what turns, tools and memories do; none is made that nobody wants."""

from __future__ import annotations

from agenthost import (
    Activity,
    AgentHostError,
    Cancelled,
    Context,
    Event,
    Events,
    Host,
    Interrupted,
    Json,
    Memory,
    MemoryChanged,
    Message,
    MessageReceived,
    Observer,
    Subject,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolUse,
    Turn,
    TurnEnded,
    TurnResult,
    TurnStarted,
    TurnState,
    Usage,
    Waiting,
)

EXCERPT = 200
"""So many characters of what a tool says are told; the whole is in the journal."""

NOTHING = TurnResult("", Usage(), 0, 0)
OF_TURNS: tuple[type[Event], ...] = (MessageReceived, TurnEnded)
OF_TOOLS: tuple[type[Event], ...] = (ToolCalled, ToolEnded)


class Teller(Observer):
    """Tells of turns and tool calls, as every observer is told of them."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def wants(self, subject: Subject) -> bool:
        """Tell whether anybody listens for what becomes of the subject."""
        match subject:
            case Message():
                return any(map(self._events.wants, OF_TURNS))
            case ToolUse():
                return any(map(self._events.wants, OF_TOOLS))
            case _:
                return False

    def started(self, activity: Activity) -> None:
        """Tell of a message or a tool call."""
        match activity.subject:
            case Message() if self._events.wants(MessageReceived):
                self._events.publish(_received(activity))
            case ToolUse(name=name) if self._events.wants(ToolCalled):
                self._events.publish(
                    ToolCalled(*_agent(activity), name, activity.context.turn_id or "")
                )

    def ended(self, activity: Activity) -> None:
        """Tell how a turn or a tool call ended."""
        match activity.subject:
            case Message() if self._events.wants(TurnEnded):
                self._events.publish(_turn_ended(activity))
            case ToolUse(name=name) if self._events.wants(ToolEnded):
                self._events.publish(_tool_ended(activity, name))


def tell_of_turns(host: Host) -> None:
    """Tell from now on of each turn that gets its session."""
    events, clock = host.events, host.clock

    def began(turn: Turn) -> None:
        if events.wants(TurnStarted):
            agent = turn.agent
            where = (agent.name, agent.session_id, turn.id)
            events.publish(TurnStarted(agent.id, clock.time(), *where))

    host.turns.listen(began)


class ToldMemory:
    """A memory whose changes are told, once they are on disk."""

    def __init__(self, memory: Memory, events: Events, host: Host) -> None:
        self._memory = memory
        self._events = events
        self._clock = host.clock

    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        """Give the value of a key, and its labels."""
        return await self._memory.get(namespace, key)

    async def items(self, namespace: str) -> list[tuple[str, Json]]:
        """Give every key of a namespace with its value."""
        return await self._memory.items(namespace)

    async def set(self, by: Context, namespace: str, key: str, value: Json) -> None:
        """Put a value under a key."""
        await self._memory.set(by, namespace, key, value)
        self._tell(namespace, key, "set")

    async def delete(self, namespace: str, key: str) -> None:
        """Forget a key."""
        await self._memory.delete(namespace, key)
        self._tell(namespace, key, "deleted")

    def _tell(self, namespace: str, key: str, operation: str) -> None:
        if self._events.wants(MemoryChanged):
            now = self._clock.time()
            self._events.publish(MemoryChanged(namespace, now, key, operation))


def _agent(activity: Activity) -> tuple[str, float]:
    """The subject and the time of an event; a tool may be called for no agent."""
    agent = activity.context.agent
    return ("" if agent is None else agent.id), activity.host.clock.time()


def _where(activity: Activity) -> tuple[str, str, str]:
    context = activity.context
    agent, turn_id = context.agent, context.turn_id or ""
    return (
        ("", "", turn_id) if agent is None else (agent.name, agent.session_id, turn_id)
    )


def _received(activity: Activity) -> MessageReceived:
    caller, message = activity.context.caller, activity.subject
    text = message.text if isinstance(message, Message) else ""
    name = "" if caller is None else caller.name
    return MessageReceived(*_agent(activity), *_where(activity), name, text)


def _turn_ended(activity: Activity) -> TurnEnded:
    error, result = activity.error, activity.result
    if not isinstance(result, TurnResult):
        result = NOTHING
    return TurnEnded(
        *_agent(activity),
        *_where(activity),
        state=_state(error).value,
        text=result.text,
        error=error.code if isinstance(error, AgentHostError) else "",
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost_micro_usd=result.cost_micro_usd,
        finish=result.finish.value if result.finish else "",
    )


def _state(error: BaseException | None) -> TurnState:
    match error:
        case None:
            return TurnState.DONE
        case Cancelled():
            return TurnState.CANCELLED
        case Interrupted():
            return TurnState.INTERRUPTED
        case Waiting():
            return TurnState.WAITING
        case _:
            return TurnState.FAILED


def _tool_ended(activity: Activity, tool: str) -> ToolEnded:
    output = activity.result
    bad, text = True, str(activity.error or "")
    if isinstance(output, ToolOutput):
        bad, text = output.is_error, output.text
    turn_id, seconds = activity.context.turn_id or "", activity.seconds
    return ToolEnded(*_agent(activity), tool, turn_id, bad, seconds, text[:EXCERPT])
