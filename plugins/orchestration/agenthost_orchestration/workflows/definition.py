"""What a workflow is: its steps, each with what it asks of whom and what may fail."""

from __future__ import annotations

import re
from enum import StrEnum

from agenthost_values.value_class import value_class

BETWEEN = "\n\n---\n\n"
"""Stands between the outputs that a COLLECT joins."""
PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")
"""A name in a prompt, of which the output with this name takes the place."""


class Mode(StrEnum):
    """How a step is run."""

    SEQUENTIAL = "sequential"
    FAN_OUT = "fan_out"
    COLLECT = "collect"
    CONDITIONAL = "conditional"
    LOOP = "loop"


class ErrorMode(StrEnum):
    """What becomes of a run when a step fails."""

    FAIL = "fail"
    SKIP = "skip"
    RETRY = "retry"


@value_class
class WorkflowStep:
    """One step; COLLECT names no agent, every other exactly one, by id or by name.

    Args:
        name: What people call it.
        agent_id: Who is asked, or "".
        agent_name: Who is asked, or "".
        prompt: A template with ``{{input}}`` and ``{{<output_var>}}``.
        mode: How it is run.
        timeout_secs: How long one call may take.
        error_mode: What becomes of the run when it fails.
        max_retries: Further attempts under RETRY.
        output_var: The name of its output for later steps, or "".
        condition: What the previous output must contain for CONDITIONAL.
        max_iterations: The most turns of a LOOP.
        until: What the output that ends a LOOP contains.
        shared_session: Whether it speaks in the agent's own session.
    """

    name: str
    agent_id: str = ""
    agent_name: str = ""
    prompt: str = "{{input}}"
    mode: Mode = Mode.SEQUENTIAL
    timeout_secs: int = 120
    error_mode: ErrorMode = ErrorMode.FAIL
    max_retries: int = 3
    output_var: str = ""
    condition: str = ""
    max_iterations: int = 5
    until: str = ""
    shared_session: bool = False


@value_class
class Draft:
    """What people say of a workflow, read and checked."""

    name: str
    description: str
    steps: tuple[WorkflowStep, ...]
    max_cost_micro_usd: int | None


@value_class
class Listed:
    """A workflow in a list, as :class:`Workflow` has it; ``steps`` counts them."""

    id: str
    name: str
    description: str
    steps: int
    max_cost_micro_usd: int | None
    created_at: float
    updated_at: float
    owner: str
    file: str


@value_class
class Origin:
    """The file that a workflow is read from: its name, and a digest of what it says."""

    file: str = ""
    digest: str = ""


@value_class
class Workflow:
    """A workflow as it stands.

    Args:
        id: Its own.
        name: What people call it; two may have one name.
        description: What it is for.
        steps: In order.
        max_cost_micro_usd: What one run may spend at most, None where it says nothing.
        created_at: Epoch seconds.
        updated_at: Epoch seconds.
        owner: Who made it (``kind:name``).
        file: The name of the file in the home that it was read from, "" for none.
        labels: Where what it says came from, such as ``untrusted``.
    """

    id: str
    name: str
    description: str
    steps: tuple[WorkflowStep, ...]
    max_cost_micro_usd: int | None
    created_at: float
    updated_at: float
    owner: str
    file: str = ""
    labels: frozenset[str] = frozenset()
