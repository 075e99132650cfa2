"""What a run of a workflow would cost: every step's calls, as often as they can be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import AgentHostError, Host, Quoted, user_message
from agenthost_values.value_class import value_class

from .definition import (
    BETWEEN,
    PLACEHOLDER,
    ErrorMode,
    Mode,
    Workflow,
    WorkflowStep,
)

if TYPE_CHECKING:
    from .shapes import StepQuote, WorkflowQuote

MILLION = 1_000_000
LETTERS = 4
"""Letters that stand for a token of an answer that nobody knows yet."""
LONGEST = 64 * 1024
"""Bytes of a prompt that are priced: no turn takes a longer message."""


@value_class
class _Said:
    """What a step hands on: as much as is likely, and at most."""

    likely: str
    most: str


async def quote(host: Host, workflow: Workflow, text: str) -> WorkflowQuote:
    """Tell what a run with this input would cost; nothing is asked or booked.

    Each model call is priced as the first of its step: what tools add to a turn, and
    the steps before of the same agent in the run, is in the likely cost alone.
    """
    walk = _Walk(host, text)
    steps = [await walk.step(each) for each in workflow.steps]
    most = workflow.max_cost_micro_usd
    return {
        "steps": steps,
        "most_cost_usd": _sum(each["most_cost_usd"] for each in steps),
        "likely_cost_usd": _sum(each["likely_cost_usd"] for each in steps),
        "max_cost_usd": None if most is None else most / MILLION,
        "complete": not any(each["problem"] for each in steps),
    }


class _Walk:
    """Goes through the steps in order, and knows how much each hands on."""

    def __init__(self, host: Host, text: str) -> None:
        self._host = host
        self._now = _Said(text, text)
        self._group: list[_Said] = []
        self._names: dict[str, _Said] = {}

    async def step(self, step: WorkflowStep) -> StepQuote:
        """Price a step."""
        if step.mode is Mode.COLLECT:
            self._collect(step)
            return _free(step)
        if step.mode is not Mode.FAN_OUT:
            self._end_group()
        try:
            likely, most = await self._quoted(step)
        except AgentHostError as error:
            # Whatever it says: as much as went in.
            self._hand_on(step, self._now)
            return {**_free(step), "turns": _turns(step), "problem": error.message}
        self._hand_on(
            step, _Said(_letters(likely.answer_tokens), _letters(most.output_tokens))
        )
        return _priced(step, likely, most)

    async def _quoted(self, step: WorkflowStep) -> tuple[Quoted, Quoted]:
        """Price the prompt with what is likely before it, and with the most."""
        agent = self._host.agents.find(step.agent_id or step.agent_name)
        session = agent.session_id if step.shared_session else ""
        quote = self._host.models.quote
        said = self._said(step)
        likely = await quote(agent, user_message(said.likely), session)
        if said.most == said.likely:
            return likely, likely
        return likely, await quote(agent, user_message(said.most), session)

    def _said(self, step: WorkflowStep) -> _Said:
        known = {**self._names, "input": self._now}
        likely = {name: each.likely for name, each in known.items()}
        most = {name: each.most for name, each in known.items()}
        return _Said(filled(step.prompt, likely), filled(step.prompt, most))

    def _hand_on(self, step: WorkflowStep, said: _Said) -> None:
        if step.mode is Mode.CONDITIONAL:
            # Where it is not run, what was there goes on.
            said = _Said(
                max(said.likely, self._now.likely, key=len),
                max(said.most, self._now.most, key=len),
            )
        if step.mode is Mode.FAN_OUT:
            self._group.append(said)
        else:
            self._now = said
        if step.output_var:
            self._names[step.output_var] = said

    def _collect(self, step: WorkflowStep) -> None:
        group, self._group = self._group, []
        if group:
            self._now = _Said(
                BETWEEN.join(each.likely for each in group)[:LONGEST],
                BETWEEN.join(each.most for each in group)[:LONGEST],
            )
        if step.output_var:
            self._names[step.output_var] = self._now

    def _end_group(self) -> None:
        if self._group:
            self._now = self._group[-1]
            self._group = []


def filled(prompt: str, known: dict[str, str]) -> str:
    """Put in what is known, up to what is priced."""
    pieces: list[str] = []
    size = end = 0
    for match in PLACEHOLDER.finditer(prompt):
        put = prompt[end : match.start()] + known.get(match[1], match[0])
        pieces.append(put)
        size, end = size + len(put), match.end()
        if size > LONGEST:
            break
    filled = "".join(pieces) + prompt[end:]
    return filled.encode()[:LONGEST].decode(errors="ignore")


def _letters(tokens: int) -> str:
    return "x" * min(tokens * LETTERS, LONGEST)


def _iterations(step: WorkflowStep) -> int:
    return step.max_iterations if step.mode is Mode.LOOP else 1


def _turns(step: WorkflowStep) -> int:
    """How many turns a step takes at most."""
    retries = step.max_retries if step.error_mode is ErrorMode.RETRY else 0
    return _iterations(step) * (1 + retries)


def _free(step: WorkflowStep) -> StepQuote:
    return {
        "name": step.name,
        "agent_name": step.agent_name or None,
        "model": None,
        "turns": 0,
        "next_call": None,
        "turn": None,
        "most_cost_usd": 0.0,
        "likely_cost_usd": 0.0,
        "problem": None,
    }


def _priced(step: WorkflowStep, likely: Quoted, most: Quoted) -> StepQuote:
    likely_cost = likely.likely_micro_usd * _iterations(step)
    return {
        **_free(step),
        "model": most.model,
        "turns": _turns(step),
        "next_call": {
            "input_tokens": most.input_tokens,
            "output_tokens": most.output_tokens,
            "cost_usd": most.most_micro_usd / MILLION,
        },
        "turn": {
            "calls": likely.calls,
            "cost_usd": likely.likely_micro_usd / MILLION,
            "turns": likely.turns,
        },
        "most_cost_usd": most.most_micro_usd * _turns(step) / MILLION,
        "likely_cost_usd": likely_cost / MILLION,
    }


def _sum(costs: Iterable[float]) -> float:
    """Add up without the dust of binary fractions."""
    return round(sum(costs), 6)
