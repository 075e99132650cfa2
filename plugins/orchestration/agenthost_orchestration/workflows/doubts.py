"""What in a workflow is allowed and probably not as meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agenthost_toml.problems import Problem
from agenthost_toml.suggest import did_you_mean

from .definition import PLACEHOLDER, ErrorMode, Mode, WorkflowStep

_PLAIN = WorkflowStep("plain")


def doubts(steps: Sequence[WorkflowStep]) -> Iterator[Problem]:
    """Find what has no effect, or another than people expect."""
    if not steps:
        yield Problem(("steps",), "is empty: a run gives back its input")
    known: dict[str, int] = {}
    group: dict[str, int] = {}
    for number, step in enumerate(steps):
        before = steps[number - 1].mode if number else None
        for field, text in _of_step(step, before):
            yield Problem(("steps", number, field), text)
        if step.mode is not Mode.FAN_OUT:
            known |= group
            group = {}
        if step.mode is not Mode.COLLECT:
            yield from _unset(step, number, known)
        if step.output_var:
            (group if step.mode is Mode.FAN_OUT else known)[step.output_var] = number


def _of_step(step: WorkflowStep, before: Mode | None) -> Iterator[tuple[str, str]]:
    if step.mode is Mode.COLLECT:
        if step.agent_id or step.agent_name:
            field = "agent_id" if step.agent_id else "agent_name"
            yield field, "is ignored: collect asks nobody"
        if before is not Mode.FAN_OUT:
            yield "mode", "collect joins what fan_out steps said, and none is before it"
    if step.mode is Mode.CONDITIONAL and not step.condition:
        yield "condition", "is empty: the step runs always"
    if step.mode is Mode.LOOP and not step.until:
        yield "until", "is empty: the loop ends after its first turn"
    for field, wanted, has in (
        ("condition", "mode conditional", step.mode is Mode.CONDITIONAL),
        ("until", "mode loop", step.mode is Mode.LOOP),
        ("max_iterations", "mode loop", step.mode is Mode.LOOP),
        ("max_retries", "error_mode retry", step.error_mode is ErrorMode.RETRY),
    ):
        if not has and getattr(step, field) != getattr(_PLAIN, field):
            yield field, f"is ignored: it goes with {wanted}"


def _unset(
    step: WorkflowStep, number: int, known: Mapping[str, int]
) -> Iterator[Problem]:
    """Find what the prompt names and no step before it sets."""
    for name in dict.fromkeys(PLACEHOLDER.findall(step.prompt)):
        if name != "input" and name not in known:
            hint = did_you_mean(name, ("input", *known))
            text = f"no step before it sets {{{{{name}}}}}, which stays as it is{hint}"
            yield Problem(("steps", number, "prompt"), text)
