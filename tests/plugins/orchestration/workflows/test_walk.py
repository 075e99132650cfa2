"""The semantics of a walk, beside a model of them that was written on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

import pytest
from agenthost_orchestration.workflows.definition import ErrorMode, Mode, WorkflowStep
from agenthost_orchestration.workflows.walk import (
    PROMPT_CHARACTERS,
    Asked,
    Ended,
    Line,
    Outcome,
    StepFailed,
    filled,
    walk,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from .stage import step

Answer = Callable[[Asked], Outcome]
Told = tuple[list[str], str]


def follow(line: Line, answer: Answer, asked: list[str]) -> Ended:
    """Follow a line to its end."""
    try:
        call = next(line)
        while True:
            asked.append(f"{call.key} {call.prompt}")
            call = line.send(answer(call))
    except StopIteration as end:
        text: str | None = end.value
        return text
    except StepFailed as failed:
        return failed


def walked(steps: tuple[WorkflowStep, ...], given_: str, answer: Answer) -> Told:
    """Walk to the end; give what was asked, and the output or the error."""
    asked: list[str] = []
    course = walk(steps, given_)
    try:
        lines = next(course)
        while True:
            lines = course.send([follow(each, answer, asked) for each in lines])
    except StopIteration as end:
        return asked, str(end.value)
    except StepFailed as failed:
        return asked, f"FAILED {failed.message} ({failed.code})"


class Model:
    """The semantics as the requirement tells them, one step after another."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.variables: dict[str, str] = {}
        self.group: list[str] = []

    def told(self, steps: tuple[WorkflowStep, ...], given_: str) -> Told:
        """Tell what is asked, and what comes of it."""
        now, index = given_, 0
        while index < len(steps):
            at = steps[index]
            if at.mode is not Mode.FAN_OUT:
                now = self.one(index, at, now)
                index += 1
            else:
                members = []
                while index < len(steps) and steps[index].mode is Mode.FAN_OUT:
                    members.append((index, steps[index]))
                    index += 1
                now = self.fan(members, now)
            if now.startswith("FAILED"):
                return self.asked, now
        return self.asked, now

    def one(self, index: int, at: WorkflowStep, now: str) -> str:
        """Take a step that runs alone."""
        if at.mode is Mode.COLLECT:
            if not self.group:
                return now
            return self.put(at, "\n\n---\n\n".join(self.group))
        if at.mode is Mode.CONDITIONAL and at.condition.lower() not in now.lower():
            return now
        if at.mode is not Mode.LOOP:
            said = self.tried(index, 0, at, now, self.variables)
            return now if said is None else self.put(at, said)
        last = None
        for turn in range(1, at.max_iterations + 1):
            said = self.tried(index, turn, at, now, self.variables)
            if said is None:
                break
            if said.startswith("FAILED"):
                return said
            now = last = said
            if at.until.lower() in said.lower():
                break
        return now if last is None else self.put(at, last)

    def fan(self, members: list[tuple[int, WorkflowStep]], now: str) -> str:
        """Take steps that run side by side."""
        before = dict(self.variables)
        outputs = [self.tried(i, 0, at, now, before) for i, at in members]
        for said in outputs:
            if said is not None and said.startswith("FAILED"):
                return said
        self.group = [said for said in outputs if said is not None]
        for (_, at), said in zip(members, outputs, strict=True):
            if said is not None:
                now = self.put(at, said)
        return now

    def put(self, at: WorkflowStep, said: str) -> str:
        """Keep an output under its name."""
        if at.output_var and not said.startswith("FAILED"):
            self.variables[at.output_var] = said
        return said

    def tried(
        self, index: int, turn: int, at: WorkflowStep, now: str, known: dict[str, str]
    ) -> str | None:
        """Ask as often as the error mode says."""
        prompt, rest = "", at.prompt
        names = {**known, "input": now}
        while rest:
            name = next((n for n in names if rest.startswith("{{" + n + "}}")), None)
            taken = 1 if name is None else len(name) + 4
            prompt += rest[0] if name is None else names[name]
            rest = rest[taken:]
        calls = 1 + (at.max_retries if at.error_mode is ErrorMode.RETRY else 0)
        for number in range(1, calls + 1):
            self.asked.append(f"{index}:{turn}:{number} {prompt}")
            outcome = self.answer(Asked(index, turn, number, prompt))
            if outcome.text is not None:
                return outcome.text
            if outcome.final:
                break
        if at.error_mode is ErrorMode.SKIP:
            return None
        how = f" after {number - 1} retries" if number > 1 else ""
        error = f"Step '{at.name}' failed{how}: {outcome.error}"
        if outcome.error == f"timed out after {at.timeout_secs}s" and not how:
            error = f"Step '{at.name}' {outcome.error}"
        return f"FAILED {error} ({outcome.code})"


PIECES = st.sampled_from(
    ["{{input}}", "{{a}}", "{{b}}", "{{no}}", "{{", "}}", "a", "STOP", " ", "{a}"]
)
WORDS = st.lists(PIECES, max_size=4).map("".join)
OUTCOMES = st.one_of(
    WORDS.map(Outcome),
    st.sampled_from(
        [
            Outcome(None, "it broke", "broken"),
            Outcome(None, "timed out after 7s", "turn_failed"),
            Outcome(None, "stopped", "cancelled", final=True),
        ]
    ),
)
STEPS = st.builds(
    WorkflowStep,
    name=st.sampled_from(["one", "two"]),
    agent_name=st.just("tester"),
    prompt=WORDS,
    mode=st.sampled_from(Mode),
    timeout_secs=st.just(7),
    error_mode=st.sampled_from(ErrorMode),
    max_retries=st.integers(0, 2),
    output_var=st.sampled_from(["", "a", "b", "input"]),
    condition=st.sampled_from(["", "A", "stop", "no"]),
    max_iterations=st.integers(0, 3),
    until=st.sampled_from(["", "Stop", "a"]),
)


EXAMPLES = [
    60,
    pytest.param(1_000, marks=pytest.mark.conformance),
    pytest.param(5_000, marks=pytest.mark.faults),
]


@pytest.mark.parametrize("examples", EXAMPLES)
def test_a_walk_does_what_the_model_says(examples: int) -> None:
    @settings(max_examples=examples)
    @given(
        st.lists(STEPS, max_size=7).map(tuple),
        WORDS,
        st.lists(OUTCOMES, min_size=1, max_size=12),
    )
    def holds(
        steps: tuple[WorkflowStep, ...], given_: str, outcomes: list[Outcome]
    ) -> None:
        def answer(asked: Asked) -> Outcome:
            return outcomes[crc32(asked.key.encode()) % len(outcomes)]

        assert walked(steps, given_, answer) == Model(answer).told(steps, given_)

    holds()


def test_what_is_put_in_is_never_expanded_again() -> None:
    values = {"input": "{{secret}} {{input}}", "secret": "hush", "x": "{{"}
    assert filled("{{input}}!", values) == "{{secret}} {{input}}!"
    assert filled("{{x}}secret}}", values) == "{{secret}}"
    assert (
        filled("{{nobody}} {{ input }} {{}}", values) == "{{nobody}} {{ input }} {{}}"
    )


def test_a_prompt_that_would_be_huge_is_never_made() -> None:
    values = {"input": "x" * 1_000}
    assert len(filled("{{input}}" * 262, values)) <= PROMPT_CHARACTERS
    with pytest.raises(StepFailed, match="characters, over the limit of 262144"):
        filled("{{input}}" * 1_000_000, values)


def test_a_huge_prompt_fails_its_step_as_any_failure_does() -> None:
    huge = step("big", "{{input}}" * 1_000)
    text = "x" * 1_000

    def answer(asked: Asked) -> Outcome:
        return Outcome(asked.prompt)

    asked, told = walked((huge,), text, answer)
    assert not asked
    assert told.startswith("FAILED Step 'big' failed: its prompt has 1000000 char")
    skipped = replace(huge, error_mode=ErrorMode.SKIP)
    assert walked((skipped,), text, answer) == ([], text)


def test_a_step_that_a_person_stops_is_not_tried_again() -> None:
    retry = step("try", error_mode="retry")
    outcome = Outcome(None, "the turn was stopped", "cancelled", final=True)
    asked, told = walked((retry,), "x", lambda _: outcome)
    assert len(asked) == 1
    assert told == "FAILED Step 'try' failed: the turn was stopped (cancelled)"
