"""How answers end: which are whole, which are asked for again, and with how much room.

An answer that its length limit cut off while the model was thinking, or inside a tool
call, is no answer. It is asked for again once, with twice the room; what it had said by
then stays said, and the model goes on from there.
"""

from __future__ import annotations

from dataclasses import replace

from agenthost import (
    AgentView,
    Completion,
    CutShort,
    Finish,
    Message,
    ProviderError,
    ProviderFault,
    Reasoning,
    Role,
    Target,
    Text,
    TurnOptions,
)

LEAST = 16_384
"""What is asked for where nobody set a limit and the first one was too short."""
BROKEN_OFF = 16 * 1024
"""So many characters of an answer that broke off are kept."""
GO_ON = (
    "Your answer was cut off at its length limit, inside a tool call, which was not "
    "made. Go on from where you stopped and make the call again as a whole."
)


class Room:
    """How long the answers of a turn may be; it grows once at most.

    Args:
        target: The model that is asked, which has a limit of its own.
        agent: Its manifest may set a limit, None is the model's default.
        options: Whoever started the turn may set one, which is never gone beyond.
    """

    def __init__(self, target: Target, agent: AgentView, options: TurnOptions) -> None:
        self.tokens = options.max_tokens or agent.manifest.model.max_tokens
        self.said = ""
        self._fixed = options.max_tokens is not None
        self._model = target.model
        # What a model that nobody lists can say at most, nobody knows.
        self._listed = target.model in target.provider.facts.models
        self._grown = False

    def grow(self, completion: Completion) -> None:
        """Make room for an answer that was cut off.

        Raises:
            CutShort: It has grown before, or there is no more.
        """
        self.said = completion.message.text
        had = self.tokens or completion.usage.output_tokens
        more = 2 * had if self.tokens else max(2 * had, LEAST)
        if self._listed:
            more = min(more, self._model.max_output)
        if self._fixed or self._grown or more <= had:
            raise CutShort(self._problem(completion, had))
        self.tokens, self._grown = more, True

    def asked(self, messages: list[Message]) -> tuple[Message, ...]:
        """Give what the model is asked, with the words that it goes on from."""
        if not self.said.strip():
            return tuple(messages)
        said = Message(Role.ASSISTANT, (Text(self.said),))
        return (*messages, said, Message(Role.USER, (Text(GO_ON),)))

    def whole(self, message: Message) -> Message:
        """Put the words before the cut in front of those behind it."""
        said, self.said = self.said, ""
        if not said:
            return message
        parts = list(message.parts)
        # Thoughts stay first: vendors check that they do.
        at = 0
        while at < len(parts) and isinstance(parts[at], Reasoning):
            at += 1
        match parts[at:]:
            case [Text(text) as words, *_]:
                parts[at] = replace(words, text=said + text)
            case _:
                parts.insert(at, Text(said))
        return replace(message, parts=tuple(parts))

    def _problem(self, completion: Completion, had: int) -> str:
        where = "inside a tool call" if completion.cut_call else "before it said a word"
        if self._fixed:
            remedy = "give it more max_tokens"
        elif self._listed and had >= self._model.max_output:
            remedy = "choose a model with longer answers"
        else:
            remedy = "raise model.max_tokens in the manifest"
        return (
            f"the answer was cut off {where}, at its limit of {had} tokens; {remedy}, "
            "lower thinking.budget_tokens or ask for less"
        )


def too_long(error: ProviderError) -> ProviderError:
    """Add the remedy to what a provider says of a conversation without room."""
    remedy = (
        "summarising it did not help or is not possible; begin anew with /new, ask for "
        "less or choose a model with a larger context window"
    )
    detail = f"{error.detail}; {remedy}"
    return ProviderError(ProviderFault.CONTEXT_OVERFLOW, error.provider, detail)


def cut_off(completion: Completion) -> bool:
    """Tell whether the length limit left no answer."""
    if completion.finish is not Finish.LENGTH:
        return False
    return completion.cut_call or not completion.message.text.strip()


def shortened(text: str) -> str:
    """Cut what is kept of an answer that broke off; what is left out is told."""
    left_out = len(text) - BROKEN_OFF
    if left_out <= 0:
        return text
    return (
        f"{text[:BROKEN_OFF]}\n[the answer broke off; {left_out} characters left out]"
    )
