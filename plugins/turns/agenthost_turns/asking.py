"""What a turn asks of its model's answers, and whether the last has its form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from agenthost import (
    ChatRequest,
    Finish,
    InvalidInput,
    Json,
    JsonObject,
    Message,
    ModelSettings,
    Role,
    Text,
    Toolbox,
    ToolDefinition,
    UnfitAnswer,
)
from agenthost_toml.suggest import did_you_mean

if TYPE_CHECKING:
    from .manifest import Answering


FREE = frozenset({"", "auto", "none"})
AGAIN = (
    "Your answer was not taken: {problem}. Answer again, with JSON alone, without any "
    "words or a code fence around it. It must fit this JSON Schema: {schema}"
)


def merged(usual: Answering, own: ModelSettings | None) -> ModelSettings:
    """Put what a turn sets before what its agent's manifest says."""
    told = {name: getattr(usual, name) for name in type(usual).model_fields}
    return ModelSettings(**{**told, **(own.asked if own else {})})


async def agreed(
    settings: ModelSettings, tools: Sequence[ToolDefinition], toolbox: Toolbox
) -> Form | None:
    """Make sure that it can be asked; give the form that the answer is to have.

    Raises:
        InvalidInput: There is no such tool, or what is to be the form is none.
    """
    _check_choice(settings.tool_choice, tools)
    schema = settings.response_format
    if schema is None:
        return None
    try:
        return Form(schema, await toolbox.checker(schema))
    except InvalidInput as error:
        raise InvalidInput("response_format", error.message) from error


def _check_choice(choice: str, tools: Sequence[ToolDefinition]) -> None:
    names = [tool.name for tool in tools]
    if choice in FREE or choice in names or (choice == "required" and names):
        return
    if not names:
        raise InvalidInput("tool_choice", "the agent's model has no tools to call")
    hint = did_you_mean(choice, names)
    raise InvalidInput("tool_choice", f"the agent has no tool {choice!r}{hint}")


def unforced(request: ChatRequest) -> ChatRequest:
    """Let the model answer once it has called: forced anew, it would for ever."""
    forced = request.tool_choice not in FREE
    return replace(request, tool_choice="") if forced else request


class Form:
    """The form of a turn's answer; one without it is asked for again, once.

    Args:
        schema: The JSON Schema that it must fit.
        check: Says what of a value does not.
    """

    def __init__(self, schema: JsonObject, check: Callable[[Json], str]) -> None:
        self._schema = schema
        self._check = check
        self._refused: tuple[Message, ...] = ()

    def asked(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Give what the model is asked, with the answer that was not taken."""
        return (*messages, *self._refused)

    async def problem(self, text: str, finish: Finish | None) -> str:
        """Say why an answer cannot be taken; nothing when it can."""
        wrong = await asyncio.to_thread(self._wrong, text)
        if wrong and finish is Finish.LENGTH:
            return f"it was cut off at its length limit; {wrong}"
        return wrong

    def again(self, text: str, problem: str) -> None:
        """Ask for it again.

        Raises:
            UnfitAnswer: It was asked for again before.
        """
        if self._refused:
            raise UnfitAnswer(
                f"the answer does not fit response_format, also when asked again: "
                f"{problem}"
            )
        schema = json.dumps(dict(self._schema), ensure_ascii=False)
        asked = Text(AGAIN.format(problem=problem, schema=schema))
        said = (Message(Role.ASSISTANT, (Text(text),)),) if text.strip() else ()
        self._refused = (*said, Message(Role.USER, (asked,)))

    def _wrong(self, text: str) -> str:
        try:
            value = json.loads(text, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            return f"it is not JSON alone: {error}"
        return self._check(value)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")
