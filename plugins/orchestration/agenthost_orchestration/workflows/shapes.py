"""What the routes of workflows take and give."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class PutWorkflow(BaseModel, extra="allow", defer_build=True):
    """A workflow as a client writes it: it is read as a file of one is.

    A root model would say the same; making one takes 4 ms of every start.
    """

    @property
    def written(self) -> dict[str, Any]:
        """What the client wrote."""
        return self.model_extra or {}

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        schema: CoreSchema,
        handler: GetJsonSchemaHandler,
    ) -> JsonSchemaValue:
        """Describe what it is read as."""
        from .reading import WorkflowTable

        WorkflowTable.model_rebuild()
        return handler(WorkflowTable.__pydantic_core_schema__)


class AskWorkflowQuote(BaseModel, defer_build=True):
    """``POST /api/workflows/{id}/quote``."""

    input: Annotated[str, Field(max_length=64 * 1024)] = ""


class WorkflowItem(TypedDict):
    """A workflow in the list; ``steps`` counts them."""

    id: Id
    name: str
    description: str
    steps: int
    created_at: Moment
    updated_at: Moment
    owner: str
    file: str | None
    max_cost_usd: float | None


class StepShown(TypedDict):
    """A step; null is what says nothing."""

    name: str
    agent_id: str | None
    agent_name: str | None
    prompt: str
    mode: str
    timeout_secs: int
    error_mode: str
    max_retries: int
    output_var: str | None
    condition: str | None
    max_iterations: int
    until: str | None
    shared_session: bool


class WorkflowShown(TypedDict):
    """A whole workflow."""

    id: Id
    name: str
    description: str
    steps: list[StepShown]
    created_at: Moment
    updated_at: Moment
    owner: str
    file: str | None
    max_cost_usd: float | None


class WorkflowMade(TypedDict):
    """Answer of ``POST``; ``warnings`` name what is probably not as meant."""

    workflow_id: Id
    warnings: list[str]


class WorkflowStatus(TypedDict):
    """Answer of ``PUT``."""

    status: str
    workflow_id: Id
    warnings: list[str]


class WorkflowGone(TypedDict):
    """Answer of ``DELETE``."""

    status: str
    workflow_id: Id


class FilesLoaded(TypedDict):
    """Answer of ``POST /api/workflows/reload``: what came of the files, by name."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    gone: list[str]
    problems: list[str]
    warnings: list[str]


class NextCall(TypedDict):
    """What the first model call of a step comes to at most."""

    input_tokens: int
    output_tokens: int
    cost_usd: float


class LikelyTurn(TypedDict):
    """What one turn of a step is likely to come to, by ``turns`` of its agent."""

    calls: int
    cost_usd: float
    turns: int


class StepQuote(TypedDict):
    """What a step would cost: ``turns`` is how many it takes at most.

    Where ``problem`` says why it cannot be told, the rest is null and counts nothing.
    """

    name: str
    agent_name: str | None
    model: str | None
    turns: int
    next_call: NextCall | None
    turn: LikelyTurn | None
    most_cost_usd: float
    likely_cost_usd: float
    problem: str | None


class WorkflowQuote(TypedDict):
    """What a run would cost; nothing is asked or booked for it.

    ``most_cost_usd`` is the next call of each step as often as it can be made;
    ``likely_cost_usd`` its turn as often as it is without a failure.
    """

    steps: list[StepQuote]
    most_cost_usd: float
    likely_cost_usd: float
    max_cost_usd: float | None
    complete: bool
