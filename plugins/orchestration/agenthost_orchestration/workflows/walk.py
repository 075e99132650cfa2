"""How a workflow is walked: what is to be asked next, given what came of it so far.

Nothing is done here. ``walk`` is a generator: it gives the lines that run side by side
and takes what came of each; a line gives one call of an agent after another and takes
the outcome of each. A run that was cut off is walked again with the outcomes that are
known, and comes to the place where it was.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from agenthost import AgentHostError
from agenthost_values.value_class import value_class

from .definition import BETWEEN, PLACEHOLDER, ErrorMode, Mode, WorkflowStep

PROMPT_CHARACTERS = 256 * 1024


class StepFailed(AgentHostError):
    """A step failed, and its run with it; ``code`` is that of what it failed with."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@value_class
class Asked:
    """A call of an agent that is due.

    Args:
        index: The place of its step among the workflow's, from 0.
        iteration: Which turn of a LOOP it is, from 1; 0 for other modes.
        attempt: Which try of this it is, from 1.
        prompt: What the agent is told.
    """

    index: int
    iteration: int
    attempt: int
    prompt: str

    @property
    def key(self) -> str:
        """What it is known by, the same whenever the run is walked."""
        return f"{self.index}:{self.iteration}:{self.attempt}"


@value_class
class Outcome:
    """What came of a call: the answer, or None and why there is none.

    ``final`` says that it is of no use to ask again: a person stopped it.
    """

    text: str | None = None
    error: str = ""
    code: str = ""
    final: bool = False


Line = Generator[Asked, Outcome, str | None]
"""One step: gives its output, None where it was skipped, or raises StepFailed."""
Ended = str | None | StepFailed
Walk = Generator[Sequence[Line], Sequence[Ended], str]


class _Said:
    """What has been said so far: the current input, the variables, the last group."""

    def __init__(self, given: str) -> None:
        self.current = given
        self.variables: dict[str, str] = {}
        self.group: tuple[str, ...] = ()

    def take(self, step: WorkflowStep, text: str) -> None:
        self.current = text
        if step.output_var:
            self.variables[step.output_var] = text

    def contains(self, words: str) -> bool:
        return words.casefold() in self.current.casefold()


def walk(steps: Sequence[WorkflowStep], given: str) -> Walk:
    """Walk the steps; give the lines of each place and, at the end, the run's output.

    Args:
        steps: The workflow's.
        given: The input of the run.

    Raises:
        StepFailed: A step failed for good; the first of those that ran side by side.
    """
    said = _Said(given)
    index = 0
    while index < len(steps):
        group = _side_by_side(steps, index)
        lines = [
            _line(step, index + number, said)
            for number, step in enumerate(group)
            if _is_asked(step, said)
        ]
        if steps[index].mode is Mode.COLLECT:
            # Where there is nothing to join, the input stays as it is.
            if said.group:
                said.take(steps[index], BETWEEN.join(said.group))
        elif lines:
            _take_all(said, group, (yield lines))
        index += len(group)
    return said.current


def _side_by_side(steps: Sequence[WorkflowStep], index: int) -> Sequence[WorkflowStep]:
    """Give the step at a place, with the FAN_OUT steps that run beside it."""
    end = index
    while end < len(steps) and steps[end].mode is Mode.FAN_OUT:
        end += 1
    return steps[index : max(end, index + 1)]


def _is_asked(step: WorkflowStep, said: _Said) -> bool:
    if step.mode is Mode.CONDITIONAL:
        return said.contains(step.condition)
    return step.mode is not Mode.COLLECT


def _take_all(
    said: _Said, group: Sequence[WorkflowStep], ended: Sequence[Ended]
) -> None:
    """Take what came of steps that ran side by side, in their order."""
    for each in ended:
        if isinstance(each, StepFailed):
            raise each
    texts = []
    for step, text in zip(group, ended, strict=True):
        if isinstance(text, str):
            said.take(step, text)
            texts.append(text)
    if group[0].mode is Mode.FAN_OUT:
        said.group = tuple(texts)


def _line(step: WorkflowStep, index: int, said: _Said) -> Line:
    values = said.variables | {"input": said.current}
    if step.mode is not Mode.LOOP:
        return (yield from _tries(step, Asked(index, 0, 0, step.prompt), values))
    last = None
    for iteration in range(1, step.max_iterations + 1):
        asked = Asked(index, iteration, 0, step.prompt)
        text = yield from _tries(step, asked, values)
        if text is None:
            break
        values["input"] = last = text
        if step.until.casefold() in text.casefold():
            break
    return last


def _tries(step: WorkflowStep, asked: Asked, values: Mapping[str, str]) -> Line:
    """Ask until there is an answer or no further try; a SKIP gives None then."""
    try:
        prompt = filled(asked.prompt, values)
    except StepFailed as error:
        outcome, attempt = Outcome(error=error.message, code=error.code), 1
    else:
        retries = step.max_retries if step.error_mode is ErrorMode.RETRY else 0
        for attempt in range(1, retries + 2):
            outcome = yield Asked(asked.index, asked.iteration, attempt, prompt)
            if outcome.text is not None:
                return outcome.text
            if outcome.final:
                break
    if step.error_mode is ErrorMode.SKIP:
        return None
    raise StepFailed(_told(step, attempt - 1, outcome), outcome.code)


def _told(step: WorkflowStep, retries: int, outcome: Outcome) -> str:
    if retries:
        return f"Step '{step.name}' failed after {retries} retries: {outcome.error}"
    if outcome.error == timed_out(step):
        return f"Step '{step.name}' {outcome.error}"
    return f"Step '{step.name}' failed: {outcome.error}"


def timed_out(step: WorkflowStep) -> str:
    """Say of a call of this step that it took too long."""
    return f"timed out after {step.timeout_secs}s"


def record_name(step: WorkflowStep, iteration: int) -> str:
    """What a call of a step is called in the run's record."""
    return f"{step.name} (iter {iteration})" if iteration else step.name


def filled(template: str, values: Mapping[str, str]) -> str:
    """Put the values in their places, in one pass: what is put in stays as it is.

    Raises:
        StepFailed: It would be longer than a prompt may be.
    """
    # Text and names by turns; a name that nobody knows stays as it is written.
    parts = PLACEHOLDER.split(template)
    parts[1::2] = [values.get(name, f"{{{{{name}}}}}") for name in parts[1::2]]
    if (length := sum(map(len, parts))) > PROMPT_CHARACTERS:
        raise StepFailed(
            f"its prompt has {length} characters, over the limit of "
            f"{PROMPT_CHARACTERS}; ask for shorter answers before it",
            "too_large",
        )
    return "".join(parts)
