"""Whatever is written is taken or refused by its key, and comes back as it was."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost_orchestration.workflows.definition import ErrorMode, Mode, WorkflowStep
from agenthost_orchestration.workflows.export import as_toml
from hypothesis import given, settings
from hypothesis import strategies as st

EXAMPLES = {"quick": 12, "long": 120, "all": 600}

JSON = "application/json"
FIELDS = [each.name for each in fields(WorkflowStep)]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=5,
)
USUAL = {
    "mode": st.sampled_from([each.value for each in Mode]),
    "error_mode": st.sampled_from([each.value for each in ErrorMode]),
    "timeout_secs": st.integers(-1, 3_700),
    "max_retries": st.integers(-1, 12),
    "max_iterations": st.integers(-1, 110),
    "output_var": st.sampled_from(["a", "b", "input", ""]),
}
STEPS = st.dictionaries(
    st.sampled_from(FIELDS), ODD, max_size=4
) | st.fixed_dictionaries(
    {"agent_name": st.just("ada")}, optional={**USUAL, "prompt": TEXT, "until": TEXT}
)
WORKFLOWS = ODD | st.fixed_dictionaries(
    {"steps": ODD | st.lists(STEPS | ODD, max_size=4) | st.lists(STEPS, max_size=4)},
    optional={"name": TEXT | ODD, "description": TEXT | ODD, "max_cost_usd": ODD},
)
# What is always a workflow.
LINES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
PROMPTS = TEXT.filter(str.strip)
GOOD_STEPS = st.fixed_dictionaries(
    {"prompt": PROMPTS},
    optional={
        "name": LINES,
        "mode": USUAL["mode"],
        "error_mode": USUAL["error_mode"],
        "timeout_secs": st.integers(1, 3_600),
        "max_retries": st.integers(0, 10),
        "max_iterations": st.integers(1, 100),
        "condition": TEXT,
        "until": TEXT,
        "shared_session": st.booleans(),
    },
)
WHO = st.fixed_dictionaries({"agent_name": LINES}) | st.fixed_dictionaries(
    {"agent_id": st.uuids().map(str)}
)
GOOD = st.fixed_dictionaries(
    {
        "name": LINES,
        "steps": st.lists(st.builds(dict.__or__, GOOD_STEPS, WHO), max_size=4),
    },
    optional={
        "description": TEXT,
        "max_cost_usd": st.integers(1, 10**9).map(lambda micro: micro / 1_000_000),
    },
)


class Asking:
    """A daemon that a function without a loop asks."""

    def __init__(self, runner: asyncio.Runner, daemon: RunningDaemon) -> None:
        self.daemon = daemon
        self._runner = runner

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send JSON; give the status and what is answered."""
        # Infinity and the like is what clients write too.
        text, kind = json.dumps(body), {"content-type": JSON}
        asked = self.daemon.http.request(method, path, content=text, headers=kind)
        answer = self._runner.run(asked)
        return answer.status_code, answer.json()


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    with asyncio.Runner() as runner:
        daemons = Daemons(tmp_path)
        config = "[rate_limit]\nenabled = false\n"
        try:
            yield Asking(runner, runner.run(daemons.start(config=config)))
        finally:
            runner.run(daemons.close())


def at_sizes(function: Callable[..., None]) -> Any:
    sizes = [pytest.param(EXAMPLES["quick"], id="quick")]
    sizes += [pytest.param(EXAMPLES["long"], id="long", marks=pytest.mark.conformance)]
    sizes += [pytest.param(EXAMPLES["all"], id="all", marks=pytest.mark.faults)]
    return pytest.mark.parametrize("examples", sizes)(function)


@at_sizes
def test_any_json_is_taken_or_refused_by_its_key(asking: Asking, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(body=WORKFLOWS)
    def holds(body: Any) -> None:
        status, told = asking.ask("POST", "/api/workflows", body)
        if status == 201:
            id_ = told["workflow_id"]
            assert asking.ask("DELETE", f"/api/workflows/{id_}")[0] == 200
            return
        key, colon, _ = told["error"].partition(": ")
        assert (status, colon) == (400, ": ")
        assert key.split("[")[0].split(".")[0] in {
            "steps", "name", "description", "max_cost_usd", "body",
        }  # fmt: skip

    holds()


@at_sizes
def test_a_workflow_goes_through_toml_row_and_put_unchanged(
    asking: Asking, examples: int
) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(body=GOOD)
    def holds(body: dict[str, Any]) -> None:
        status, made = asking.ask("POST", "/api/workflows", body)
        assert status == 201, made
        path = f"/api/workflows/{made['workflow_id']}"
        first = asking.ask("GET", path)[1]
        for key, value in body.items():
            assert first[key] == value or key == "steps"
        for step, wanted in zip(first["steps"], body["steps"], strict=True):
            said = {key: value for key, value in wanted.items() if value != ""}
            assert step | said == step
        document = tomllib.loads(as_toml(first))
        assert asking.ask("PUT", path, document)[0] == 200
        second = asking.ask("GET", path)[1]
        assert asking.ask("PUT", path, second)[0] == 200
        third = asking.ask("GET", path)[1]
        for shown in (first, second, third):
            shown.pop("updated_at")
        assert first == second == third
        asking.ask("DELETE", path)

    holds()
