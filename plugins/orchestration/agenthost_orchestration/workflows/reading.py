"""Read a workflow as people write it, in JSON or in TOML: the one way to check it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Annotated, Any, Literal
from uuid import UUID

from agenthost_toml.problems import Problem, problems, unknown_keys
from agenthost_toml.types import Table
from agenthost_values.value_class import value_class
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from .definition import Draft, ErrorMode, Mode, WorkflowStep
from .doubts import doubts

MOST_STEPS = 100
MOST_SECONDS = 3_600
MOST_RETRIES = 10
MOST_ITERATIONS = 100
LONGEST_NAME = 100
LONGEST_DESCRIPTION = 4_096
LONGEST_PROMPT = 65_536
"""Bytes, as of any message."""
LONGEST_CONDITION = 4_096
DEAREST = 1_000_000
MOST_DOUBTS = 20
"""More are not told: who mends these sees the next."""
MILLION = 1_000_000
NAME_OF_NONE = "unnamed"
OWN_WORDS = frozenset({"id", "created_at", "updated_at", "owner", "file"})
"""What the API adds to a workflow that it shows; sent back, it says nothing."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Faulty(Exception):
    """What was written is no workflow; each problem has its key and the remedy."""

    def __init__(self, found: list[Problem]) -> None:
        super().__init__("\n".join(f"{each.key}: {each.text}" for each in found))
        self.problems = found


@value_class
class Reading:
    """A workflow as it was written, and what in it is probably not as meant."""

    draft: Draft
    doubts: tuple[Problem, ...]


def _line(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_NAME or not text.isprintable():
        raise ValueError(
            f"must be 1 to {LONGEST_NAME} printable characters on one line"
        )
    return text


def _at_most(longest: int) -> AfterValidator:
    def check(text: str) -> str:
        if len(text) > longest:
            raise ValueError(f"must have at most {longest} characters; shorten it")
        return text

    return AfterValidator(check)


def _prompt(text: str) -> str:
    if len(text.encode()) > LONGEST_PROMPT:
        raise ValueError(f"must have at most {LONGEST_PROMPT} bytes; shorten it")
    return text


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError(
            "must be the id of an agent, a UUID; use agent_name for its name"
        ) from None


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise ValueError(
            "must be 1 to 64 letters, digits and underscores, beginning with no digit"
        )
    if text == "input":
        raise ValueError("must not be input, which stands for the output before")
    return text


def _blank_is_none(value: object) -> object:
    return None if value == "" else value


def _not_too_many(value: object) -> object:
    if isinstance(value, list) and len(value) > MOST_STEPS:
        raise ValueError(f"must be at most {MOST_STEPS} steps; there are {len(value)}")
    return value


def _short(longest: int) -> Any:
    return Field(json_schema_extra={"maxLength": longest})


Line = Annotated[str, AfterValidator(_line), _short(LONGEST_NAME)]
_Unset = BeforeValidator(_blank_is_none)
_Condition = Annotated[str, _at_most(LONGEST_CONDITION), _short(LONGEST_CONDITION)]


class StepTable(Table):
    """One step; ``collect`` names no agent, every other exactly one."""

    name: Line = "step"
    """What people call it."""
    agent_id: Annotated[Annotated[str, AfterValidator(_uuid)] | None, _Unset] = None
    """Who is asked, by id; use either this or agent_name."""
    agent_name: Annotated[Line | None, _Unset] = None
    """Who is asked, by name; use either this or agent_id."""
    prompt: Annotated[str, AfterValidator(_prompt), _short(LONGEST_PROMPT)] = (
        "{{input}}"
    )
    """A template with ``{{input}}`` and ``{{<output_var>}}``."""
    mode: Literal["sequential", "fan_out", "collect", "conditional", "loop"] = (
        "sequential"
    )
    """How it is run."""
    timeout_secs: Annotated[int, Field(ge=1, le=MOST_SECONDS)] = 120
    """How many seconds one call may take."""
    error_mode: Literal["fail", "skip", "retry"] = "fail"
    """What becomes of the run when it fails."""
    max_retries: Annotated[int, Field(ge=0, le=MOST_RETRIES)] = 3
    """Further attempts, for error_mode retry."""
    output_var: Annotated[Annotated[str, AfterValidator(_variable)] | None, _Unset] = (
        None
    )
    """The name of its output for later steps."""
    condition: _Condition | None = None
    """What the output before must contain, for mode conditional."""
    max_iterations: Annotated[int, Field(ge=1, le=MOST_ITERATIONS)] = 5
    """The most turns, for mode loop."""
    until: _Condition | None = None
    """What the output that ends it contains, for mode loop."""
    shared_session: bool = False
    """Whether it speaks in the agent's own session instead of one of the run's."""

    def step(self) -> WorkflowStep:
        """What is kept of it."""
        return WorkflowStep(
            name=self.name,
            agent_id=self.agent_id or "",
            agent_name=self.agent_name or "",
            prompt=self.prompt,
            mode=Mode(self.mode),
            timeout_secs=self.timeout_secs,
            error_mode=ErrorMode(self.error_mode),
            max_retries=self.max_retries,
            output_var=self.output_var or "",
            condition=self.condition or "",
            max_iterations=self.max_iterations,
            until=self.until or "",
            shared_session=self.shared_session,
        )


class WorkflowTable(Table):
    """A workflow: agents chained in steps."""

    name: Line = NAME_OF_NONE
    """What people call it; two may have one name."""
    description: Annotated[
        str, _at_most(LONGEST_DESCRIPTION), _short(LONGEST_DESCRIPTION)
    ] = ""
    """What it is for."""
    max_cost_usd: (
        Annotated[float, Field(gt=0, le=DEAREST, allow_inf_nan=False)] | None
    ) = None
    """What one run may spend at most."""
    steps: Annotated[
        tuple[StepTable, ...],
        Field(strict=False, json_schema_extra={"maxItems": MOST_STEPS}),
        BeforeValidator(_not_too_many),
    ]
    """In order."""


def read_workflow(written: Mapping[str, Any], name: str = NAME_OF_NONE) -> Reading:
    """Read what a JSON object or a TOML document says.

    Args:
        written: The document; what is null in it is as if it were left out.
        name: The workflow's name where it says none.

    Raises:
        Faulty: It is no workflow.
    """
    said = {key: _said(key, value) for key, value in written.items()}
    said = {k: v for k, v in said.items() if v is not None and k not in OWN_WORDS}
    named = {"name": name, **said}
    try:
        table = WorkflowTable.model_validate(named)
    except ValidationError as error:
        raise Faulty(problems(error, named)) from None
    steps = tuple(each.step() for each in table.steps)
    if found := list(_faults(steps)):
        raise Faulty(found)
    most = table.max_cost_usd
    cost = None if most is None else max(round(most * MILLION), 1)
    draft = Draft(table.name, table.description, steps, cost)
    told = chain(unknown_keys(WorkflowTable, said), doubts(steps))
    return Reading(draft, tuple(islice(told, MOST_DOUBTS)))


def known_of(written: Mapping[str, Any]) -> dict[str, Any]:
    """Give the keys of a workflow that was read, without those that are unknown."""
    top = {key: written[key] for key in WorkflowTable.model_fields if key in written}
    fields = StepTable.model_fields
    steps = [{k: step[k] for k in fields if k in step} for step in written["steps"]]
    return {**top, "steps": steps}


def _said(key: str, value: Any) -> Any:
    """Leave out what is null, in each step too: clients write it for nothing."""
    if key != "steps" or not isinstance(value, list):
        return value
    return [
        {name: each for name, each in step.items() if each is not None}
        if isinstance(step, dict)
        else step
        for step in value
    ]


def _faults(steps: tuple[WorkflowStep, ...]) -> Iterator[Problem]:
    """Find what no single field shows."""
    outputs: dict[str, int] = {}
    for number, step in enumerate(steps):
        for field, text in _of_step(step):
            yield Problem(("steps", number, field), text)
        if step.output_var in outputs:
            other = f"is that of steps[{outputs[step.output_var]}]; choose another"
            yield Problem(("steps", number, "output_var"), other)
        elif step.output_var:
            outputs[step.output_var] = number


def _of_step(step: WorkflowStep) -> Iterator[tuple[str, str]]:
    if step.agent_id and step.agent_name:
        yield "agent_id", "names an agent, and so does agent_name; remove one of them"
    if step.mode is Mode.COLLECT:
        return
    if not (step.agent_id or step.agent_name):
        yield "agent_name", "is missing; add it, or agent_id"
    if not step.prompt.strip():
        yield "prompt", "must not be empty; {{input}} is what came before"
