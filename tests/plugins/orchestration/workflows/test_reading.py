"""What people write as a workflow is read, refused with its key, or doubted."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost_orchestration.workflows.definition import ErrorMode, Mode, WorkflowStep
from agenthost_orchestration.workflows.reading import Faulty, read_workflow

ADA = {"agent_name": "ada"}
UUID = "0A6F1C9E-7D1B-4A55-9D0C-3B1F3F6F2A10"

# What a step says, the key that is named, words of what is wrong.
FAULTS: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({**ADA, "mode": "sequental"}, "mode", "did you mean 'sequential'?"),
    ({**ADA, "mode": "Loop"}, "mode", "did you mean 'loop'?"),
    ({**ADA, "mode": 7}, "mode", "must be one of sequential, fan_out, collect"),
    ({**ADA, "error_mode": "retry3"}, "error_mode", "one of fail, skip, retry"),
    ({}, "agent_name", "is missing; add it, or agent_id"),
    ({"agent_name": "", "agent_id": ""}, "agent_name", "is missing"),
    ({**ADA, "agent_id": UUID}, "agent_id", "and so does agent_name"),
    ({**ADA, "agent_id": UUID, "mode": "collect"}, "agent_id", "remove one"),
    ({"agent_id": "ada"}, "agent_id", "use agent_name"),
    ({"agent_id": 5}, "agent_id", "must be text"),
    ({"agent_name": "a\nb"}, "agent_name", "on one line"),
    ({**ADA, "timeout_secs": 0}, "timeout_secs", "greater than or equal to 1"),
    ({**ADA, "timeout_secs": 3601}, "timeout_secs", "less than or equal to 3600"),
    ({**ADA, "timeout_secs": "120"}, "timeout_secs", "must be a whole number"),
    ({**ADA, "timeout_secs": True}, "timeout_secs", "must be a whole number"),
    ({**ADA, "timeout_secs": 2**70}, "timeout_secs", "less than or equal to 3600"),
    ({**ADA, "max_retries": -1}, "max_retries", "greater than or equal to 0"),
    ({**ADA, "max_retries": 11}, "max_retries", "less than or equal to 10"),
    ({**ADA, "max_iterations": 0}, "max_iterations", "greater than or equal to 1"),
    ({**ADA, "max_iterations": 101}, "max_iterations", "less than or equal to 100"),
    ({**ADA, "output_var": "input"}, "output_var", "must not be input"),
    ({**ADA, "output_var": "2nd"}, "output_var", "beginning with no digit"),
    ({**ADA, "output_var": "a-b"}, "output_var", "letters, digits and underscores"),
    ({**ADA, "output_var": "ü"}, "output_var", "letters, digits and underscores"),
    ({**ADA, "output_var": "a" * 65}, "output_var", "1 to 64"),
    ({**ADA, "name": " "}, "name", "1 to 100 printable"),
    ({**ADA, "name": "n" * 101}, "name", "1 to 100 printable"),
    ({**ADA, "name": "\x1b[2J"}, "name", "1 to 100 printable"),
    ({**ADA, "prompt": " \n"}, "prompt", "must not be empty"),
    ({**ADA, "prompt": "ü" * 32_769}, "prompt", "at most 65536 bytes"),
    ({**ADA, "condition": "c" * 4_097}, "condition", "at most 4096 characters"),
    ({**ADA, "until": ["done"]}, "until", "must be text"),
    ({**ADA, "shared_session": "yes"}, "shared_session", "true or false"),
)
WHOLE: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({}, "steps", "is missing; add it"),
    ({"steps": None}, "steps", "is missing; add it"),
    ({"steps": {}}, "steps", "must be a list"),
    ({"steps": "ada"}, "steps", "must be a list"),
    ({"steps": ["ada"]}, "steps[0]", "must be a table"),
    ({"steps": [ADA] * 101}, "steps", "at most 100 steps; there are 101"),
    ({"steps": [], "name": ""}, "name", "1 to 100 printable"),
    ({"steps": [], "name": 5}, "name", "must be text"),
    ({"steps": [], "description": "d" * 4_097}, "description", "at most 4096"),
    ({"steps": [], "max_cost_usd": 0}, "max_cost_usd", "greater than 0"),
    ({"steps": [], "max_cost_usd": "1"}, "max_cost_usd", "must be a number"),
    ({"steps": [], "max_cost_usd": float("nan")}, "max_cost_usd", "finite number"),
    ({"steps": [], "max_cost_usd": 1e300}, "max_cost_usd", "less than or equal"),
)
# What a second step says, the key that is doubted, words of the doubt.
DOUBTS: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({**ADA, "condition": "yes"}, "condition", "it goes with mode conditional"),
    ({**ADA, "until": "done"}, "until", "it goes with mode loop"),
    ({**ADA, "max_iterations": 9}, "max_iterations", "it goes with mode loop"),
    ({**ADA, "max_retries": 9}, "max_retries", "it goes with error_mode retry"),
    ({**ADA, "mode": "conditional"}, "condition", "the step runs always"),
    ({**ADA, "mode": "loop"}, "until", "ends after its first turn"),
    ({"mode": "collect"}, "mode", "none is before it"),
    ({**ADA, "mode": "collect"}, "agent_name", "collect asks nobody"),
    ({**ADA, "promt": "hi"}, "promt", "unknown key, ignored; did you mean 'prompt'?"),
    ({**ADA, "prompt": "{{frist}}"}, "prompt", "did you mean 'first'?"),
)


def faults_of(written: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Faulty) as told:
        read_workflow(written)
    return {each.key: each.text for each in told.value.problems}


def doubts_of(*steps: dict[str, Any], **written: Any) -> dict[str, str]:
    reading = read_workflow({"steps": list(steps), **written})
    return {each.key: each.text for each in reading.doubts}


@pytest.mark.parametrize(("step", "field", "words"), FAULTS)
def test_a_wrong_field_is_named_with_its_step(
    step: dict[str, Any], field: str, words: str
) -> None:
    told = faults_of({"steps": [ADA, step]})
    assert list(told) == [f"steps[1].{field}"]
    assert words in told[f"steps[1].{field}"]


@pytest.mark.parametrize(("written", "key", "words"), WHOLE)
def test_what_is_wrong_with_the_whole_is_named(
    written: dict[str, Any], key: str, words: str
) -> None:
    told = faults_of(written)
    assert list(told) == [key]
    assert words in told[key]


def test_an_output_is_named_once() -> None:
    step = {**ADA, "output_var": "draft"}
    told = faults_of({"steps": [step, ADA, step, step]})
    other = "is that of steps[0]; choose another"
    assert told == {"steps[2].output_var": other, "steps[3].output_var": other}


def test_all_that_is_wrong_is_told() -> None:
    told = faults_of({"name": "", "steps": [{"mode": "x"}, {"timeout_secs": 0}]})
    assert list(told) == ["name", "steps[0].mode", "steps[1].timeout_secs"]


@pytest.mark.parametrize(("step", "field", "words"), DOUBTS)
def test_what_has_no_effect_is_doubted(
    step: dict[str, Any], field: str, words: str
) -> None:
    told = doubts_of({**ADA, "output_var": "first"}, step)
    assert next(iter(told)) == f"steps[1].{field}"
    assert words in told[f"steps[1].{field}"]


def test_what_is_as_meant_is_not_doubted() -> None:
    steps: list[dict[str, Any]] = [
        {**ADA, "mode": "fan_out", "output_var": "a"},
        {**ADA, "mode": "fan_out", "output_var": "b"},
        {"mode": "collect", "prompt": ""},
        {**ADA, "prompt": "{{a}} and {{b}} and {{input}} and {x} and {{ y }}"},
        {**ADA, "mode": "conditional", "condition": "yes"},
        {**ADA, "mode": "loop", "until": "done", "max_iterations": 9},
        {**ADA, "error_mode": "retry", "max_retries": 9},
    ]
    assert doubts_of(*steps) == {}


def test_an_output_of_the_same_group_is_not_there_yet() -> None:
    group = {**ADA, "mode": "fan_out"}
    told = doubts_of({**group, "output_var": "a"}, {**group, "prompt": "{{a}}"})
    assert list(told) == ["steps[1].prompt"]


def test_no_steps_are_doubted() -> None:
    assert doubts_of() == {"steps": "is empty: a run gives back its input"}


def test_doubts_are_bounded() -> None:
    noise = {f"key{number}": 1 for number in range(10_000)}
    assert len(doubts_of(ADA, **noise)) == 20
    prompt = "".join(f"{{{{x{number}}}}}" for number in range(5_000))
    assert set(doubts_of({**ADA, "prompt": prompt})) == {"steps[0].prompt"}


def test_what_is_left_out_or_null_has_its_default() -> None:
    fields = dict.fromkeys(WorkflowStep("x").__slots__)  # type: ignore[attr-defined]  # reason: every field, as null
    step = {**fields, "agent_id": f"{{{UUID}}}"}
    written = {"steps": [ADA, step], "name": None, "max_cost_usd": None, "owner": "x"}
    draft = read_workflow(written).draft
    assert (draft.name, draft.description) == ("unnamed", "")
    assert draft.max_cost_micro_usd is None
    first, second = draft.steps
    assert first == WorkflowStep(
        "step", "", "ada", "{{input}}", Mode.SEQUENTIAL, 120, ErrorMode.FAIL, 3, "", "",
        5, "", shared_session=False,
    )  # fmt: skip
    assert second == WorkflowStep("step", UUID.lower())


def test_money_is_kept_in_whole_micro_dollars() -> None:
    most = [
        read_workflow({"steps": [], "max_cost_usd": dollars}).draft.max_cost_micro_usd
        for dollars in (0.1 + 0.2, 1, 1e-9, 1_000_000)
    ]
    assert most == [300_000, 1_000_000, 1, 10**12]
