"""The port APPROVALS: what asks people, and knows what they said."""

from __future__ import annotations

from collections.abc import Sequence

from agenthost_chat.chat import JsonObject, ToolUse
from agenthost_values.value_class import value_class

from ..context import Context, Pool
from ..errors import Blocked, Waiting


@value_class
class Question:
    """What a person is asked about a call, beside its tool and its arguments.

    Args:
        text: The question, in one or a few sentences.
        schema: Values that come with a yes: a JSON Schema of an object whose
            properties are text, numbers or booleans. The tool finds them in
            ``context.answers``.
        choices: Texts of which a yes names one, as the value ``choice``.
        url: A page to visit before answering; nobody here opens it.
    """

    text: str
    schema: JsonObject | None = None
    choices: tuple[str, ...] = ()
    url: str = ""


@value_class
class Ask:
    """A verdict: go on once a person says yes; no answer in time is a no.

    ``may_answer`` is a pattern of those who may, as ``kind:name``; an agent never may.
    """

    question: Question
    deadline_seconds: float = 3600.0
    may_answer: str = "*"


class Asked(Blocked):
    """Guards ask people about a call; for who asks nobody it is refused."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        super().__init__("it may not go on before a person was asked")
        self.asks = asks


class Approvals:
    """What asks people. As it stands here it refuses, for there is nobody to ask."""

    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:  # noqa: ARG002
        """Let a call pass that a person has approved; the same question is put once.

        Returns:
            The values that came with the yes.

        Raises:
            Waiting: Nobody has answered yet; the call is to be brought again.
            Blocked: The answer was no, came too late, or nobody can be asked.
        """
        raise Blocked("it needs a person's approval; enable the plugin approvals")

    async def standing(self, context: Context, call: ToolUse) -> JsonObject:  # noqa: ARG002
        """Let a call that is brought again pass only if all that was asked is approved.

        Whoever asked may be gone; what people said of the call, or did not, holds.

        Returns:
            The values that came with each yes.

        Raises:
            Blocked: Something was not approved, or nobody can tell.
        """
        if context.found == "waiting":
            raise Blocked("its turn waited for a person; enable the plugin approvals")
        return {}

    async def granted(self, context: Context, pool: Pool) -> int:  # noqa: ARG002
        """Tell what people let a pool spend beyond its first limit; ask for more.

        Nobody is asked where no turn of the context waits for it, nor where more was
        granted than the pool knows of.

        Raises:
            Waiting: A person is asked, and has not answered yet.
            QuotaExceeded: They said no, or nothing in time; its code is
                ``not_granted``.
            RateLimited: Too many questions of the agent are open.
            Blocked: Nobody can be asked.
        """
        raise Blocked("it needs a person's approval; enable the plugin approvals")

    async def pending(self, turn_id: str) -> Waiting | None:  # noqa: ARG002
        """Tell what a turn waits for, None when all its questions are answered."""
        return None

    async def cancel(self, agent_id: str, reason: str, session_id: str = "") -> int:  # noqa: ARG002
        """End the turns of an agent that wait, in one session when it is named.

        Returns:
            How many there were; their rows say cancelled.
        """
        return 0
