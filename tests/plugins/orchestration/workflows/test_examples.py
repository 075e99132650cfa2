"""The workflows of the field: what is asked, in which order, and what comes of it."""

from __future__ import annotations

import pytest
from agenthost import ProviderFault
from agenthost.testing import Daemons

from .stage import asked, only_run, output, run, step, workflow


async def test_a_review_pipeline_hands_each_output_on(daemons: Daemons) -> None:
    daemon = await daemons.start()
    for name in ("writer", "critic"):
        await daemon.agent(name)
    flow = workflow(
        step("draft", "Write about {{input}}.", agent_name="writer", output_var="v1"),
        step("review", "Review: {{input}}", agent_name="critic"),
        step("final", "Mend {{v1}} by {{input}}", agent_name="writer"),
    )
    for said in ("a draft", "too long", "the text"):
        daemon.model.says(said)
    assert await output(daemon, flow, "bees") == "the text"
    assert asked(daemon) == [
        "Write about bees.",
        "Review: a draft",
        "Mend a draft by too long",
    ]
    told = await only_run(daemon, flow)
    assert (told["state"], told["steps_completed"]) == ("Completed", 3)
    assert [each["name"] for each in told["steps"]] == ["draft", "review", "final"]
    assert [each["agent_name"] for each in told["steps"]] == [
        "writer",
        "critic",
        "writer",
    ]
    assert told["cost_usd"] == 3 * 20 / 1e6
    assert told["input"] == "bees"


async def test_a_brainstorm_fans_out_and_is_collected_in_order(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(
        step("before", "zero"),
        *(step(name, f"{name}: {{{{input}}}}", mode="fan_out") for name in "abc"),
        step("all", mode="collect", output_var="ideas"),
        step("choose", "Choose of {{ideas}}"),
    )
    got = await output(daemon, flow)
    ideas = [f"You said: {name}: You said: zero" for name in "abc"]
    assert got == "You said: Choose of " + "\n\n---\n\n".join(ideas)
    # A collect asks nobody and leaves no record.
    assert len((await only_run(daemon, flow))["steps"]) == 5


@pytest.mark.conformance
async def test_a_condition_that_does_not_hold_passes_its_step_over(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(
        step("check"),
        step("mend", "mend", mode="conditional", condition="BROKEN"),
        step("praise", "praise {{input}}", mode="conditional", condition="wELL"),
    )
    daemon.model.says("all is well")
    daemon.model.says("bravo")
    assert await output(daemon, flow, "look") == "bravo"
    assert asked(daemon) == ["look", "praise all is well"]


async def test_a_loop_goes_on_until_the_word(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(
        step("polish", "again: {{input}}", mode="loop", until="done", output_var="x"),
        step("end", "{{x}} and {{input}}"),
    )
    for said in ("one", "two", "it is DONE", "fin"):
        daemon.model.says(said)
    assert await output(daemon, flow, "go") == "fin"
    assert asked(daemon) == [
        "again: go",
        "again: one",
        "again: two",
        "it is DONE and it is DONE",
    ]
    names = [each["name"] for each in (await only_run(daemon, flow))["steps"]]
    assert names == [*(f"polish (iter {number})" for number in (1, 2, 3)), "end"]


async def test_a_retry_of_three_makes_four_calls(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(step("try", error_mode="retry"))
    for _ in range(4):
        daemon.model.fails(ProviderFault.BAD_REQUEST)
    answer = await run(daemon, flow, "hello")
    assert answer.status_code == 500
    told = answer.json()
    assert told["error"].startswith("Step 'try' failed after 3 retries: ")
    assert told["code"] == "bad_request"
    shown = await only_run(daemon, flow)
    assert (shown["state"], shown["id"]) == ("Failed", told["run_id"])
    assert [each["attempt"] for each in shown["steps"]] == [1, 2, 3, 4]
    assert len(daemon.model.requests) == 4


@pytest.mark.conformance
async def test_a_retry_that_succeeds_goes_on(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(step("try", error_mode="retry"), step("then"))
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    daemon.model.says("now")
    assert await output(daemon, flow, "hello") == "You said: now"
    assert (await only_run(daemon, flow))["steps_completed"] == 2


@pytest.mark.conformance
async def test_a_step_that_is_skipped_leaves_the_input_as_it_was(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(
        step("try", "try", error_mode="skip", output_var="x"),
        step("then", "{{input}} {{x}}"),
    )
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    assert await output(daemon, flow, "kept") == "You said: kept {{x}}"


@pytest.mark.conformance
async def test_a_failure_ends_the_run_and_says_of_which_step(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(step("one"), step("two", agent_name="nobody"), step("three"))
    answer = await run(daemon, flow, "hello")
    assert answer.status_code == 500
    told = answer.json()
    assert told["error"] == "Step 'two' failed: agent not found: nobody"
    assert told["code"] == "not_found"
    assert len(daemon.model.requests) == 1


@pytest.mark.conformance
async def test_nothing_to_do_gives_the_input_back(daemons: Daemons) -> None:
    daemon = await daemons.start()
    assert await output(daemon, workflow(), "as it is") == "as it is"
