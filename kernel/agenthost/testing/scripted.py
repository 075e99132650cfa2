"""A model that says what a test wrote for it, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from agenthost_chat.chat import (
    ChatRequest,
    Completion,
    Delta,
    Finish,
    JsonObject,
    Message,
    Reasoning,
    ReasoningChunk,
    Role,
    Text,
    TextChunk,
    ToolUse,
    Usage,
)

from ..errors import ProviderError, ProviderFault
from ..plugins.marks import hookimpl
from ..providers import ModelCall, ModelFacts, ProviderFacts, ProviderSpec

SLUG = "scripted"
MODEL = "scripted-model"
USAGE = Usage(10, 5)


class Pause:
    """A place where the model waits until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._go_on = asyncio.Event()

    def go_on(self) -> None:
        """Let the model speak on."""
        self._go_on.set()

    async def wait(self) -> None:
        """Tell that the place is reached and wait."""
        self.reached.set()
        await self._go_on.wait()


@dataclass(frozen=True)
class Answer:
    """One scripted answer: words and pauses, then tool calls or the end."""

    pieces: tuple[str | Pause, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    usage: Usage = USAGE
    finish: Finish | None = None
    fault: ProviderFault | None = None
    thoughts: tuple[str, ...] = ()
    cut_call: bool = False
    stop: str = ""
    logprobs: tuple[JsonObject, ...] = ()


@dataclass
class ScriptedModel:
    """Answers in the order they were written; with none left it echoes.

    ``requests`` holds what it was asked, oldest first.
    """

    requests: list[ChatRequest] = field(default_factory=list)
    name: str = SLUG

    def __post_init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._calls = 0

    def says(self, *pieces: str | Pause, usage: Usage = USAGE) -> None:
        """Write an answer of these words, one chunk each; it waits at a pause."""
        self._answers.append(Answer(pieces, usage=usage))

    def calls(self, tool: str, /, **arguments: Any) -> None:
        """Write an answer that calls one tool."""
        self.calls_all((tool, arguments))

    def calls_all(self, *calls: tuple[str, dict[str, Any]]) -> None:
        """Write an answer that calls several tools in one step."""
        uses = []
        for tool, arguments in calls:
            self._calls += 1
            uses.append(ToolUse(f"call_{self._calls}", tool, arguments))
        self._answers.append(Answer(calls=tuple(uses)))

    def fails(self, fault: ProviderFault, *pieces: str) -> None:
        """Write an answer that breaks off with a fault after these words."""
        self._answers.append(Answer(pieces, fault=fault))

    def is_cut(self, *pieces: str | Pause, in_call: bool = False) -> None:
        """Write an answer that reached its length limit, perhaps inside a call."""
        self._answers.append(Answer(pieces, finish=Finish.LENGTH, cut_call=in_call))

    def stops_before(self, word: str, *pieces: str) -> None:
        """Write an answer that one of the words to stop before ended."""
        self._answers.append(Answer(pieces, stop=word))

    def scores(self, **tokens: float) -> None:
        """Write an answer of these tokens, and how likely each was."""
        told = [
            {"token": token, "logprob": n, "bytes": [*token.encode()]}
            for token, n in tokens.items()
        ]
        scored = tuple({**each, "top_logprobs": told[:1]} for each in told)
        self._answers.append(Answer(tuple(tokens), logprobs=scored))

    def is_blocked(self, *pieces: str) -> None:
        """Write an answer that the provider's content rules ended."""
        self._answers.append(Answer(pieces, finish=Finish.CONTENT_BLOCKED))

    def thinks(self, *thoughts: str, then: str) -> None:
        """Write an answer that is thought over before it is given."""
        self._answers.append(Answer((then,), thoughts=thoughts))

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        """Give the next answer."""
        self.requests.append(call.request)
        answer = self._answers.popleft() if self._answers else _echo(call.request)
        for thought in answer.thoughts:
            yield ReasoningChunk(thought)
        said: list[str] = []
        for piece in answer.pieces:
            if isinstance(piece, Pause):
                await piece.wait()
                continue
            yield TextChunk(piece, answer.logprobs[len(said) : len(said) + 1])
            said.append(piece)
        if answer.fault is not None:
            raise ProviderError(answer.fault, SLUG, "scripted to fail")
        text = "".join(said)
        thoughts = (Reasoning("".join(answer.thoughts)),) if answer.thoughts else ()
        words = (Text(text, logprobs=answer.logprobs),) if text else ()
        parts = (*thoughts, *words, *answer.calls)
        finish = answer.finish or (Finish.TOOL_USE if answer.calls else Finish.STOP)
        message, cut = Message(Role.ASSISTANT, parts), answer.cut_call
        yield Completion(message, finish, answer.usage, cut, stop=answer.stop)

    def plugin(self) -> SimpleNamespace:
        """The plugin that offers this model as provider ``scripted``."""
        facts = ProviderFacts(
            SLUG,
            "Scripted model",
            "",
            key_required=False,
            models=(
                ModelFacts(
                    MODEL,
                    SLUG,
                    MODEL,
                    "Scripted model",
                    input_cost_per_1m=1.0,
                    output_cost_per_1m=2.0,
                ),
            ),
        )

        @hookimpl
        def register_provider() -> Iterable[ProviderSpec]:
            """Offer the scripted model."""
            return [ProviderSpec(facts, self)]

        return SimpleNamespace(__name__=SLUG, register_provider=register_provider)


def _echo(request: ChatRequest) -> Answer:
    return Answer((f"You said: {request.messages[-1].text}",))
