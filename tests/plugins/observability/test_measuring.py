"""The metrics of the GenAI conventions, as the SDK's own reader for tests has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import Activity, ChatRequest, Observer, ProviderFault, Target, hookimpl
from agenthost.testing import Daemons, Pause
from agenthost_observability.listing import MOST_MODELS
from agenthost_observability.measuring import Measuring
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, server_attributes

DURATION = "gen_ai.client.operation.duration"
FIRST = "gen_ai.client.operation.time_to_first_chunk"
TOKENS = "gen_ai.client.token.usage"
CANARY = "canary-7f3a9c1e5b"


class Meters:
    """A plugin that measures into memory, and questions about what it holds."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        sending = MeterProvider([self._reader], shutdown_on_exit=False)
        self.measuring = Measuring(sending)

    def plugin(self) -> SimpleNamespace:
        def register_observer() -> list[Observer]:
            return [self.measuring]

        return SimpleNamespace(
            __name__="measuring", register_observer=hookimpl(register_observer)
        )

    def all(self) -> dict[str, Any]:
        """Every metric by name."""
        data = self._reader.get_metrics_data()
        assert data is not None
        (resource,) = data.resource_metrics
        return {m.name: m for m in resource.scope_metrics[0].metrics}

    def points(self, name: str) -> list[HistogramDataPoint]:
        points: list[HistogramDataPoint] = list(self.all()[name].data.data_points)
        return points


def named(point: HistogramDataPoint) -> Mapping[str, Any]:
    return point.attributes or {}


async def test_a_model_call_is_measured_in_the_conventions_names(
    daemons: Daemons,
) -> None:
    meters = Meters()
    daemon = await daemons.start(plugins=[meters.plugin()])
    agent = await daemon.agent(tools=[])
    daemon.model.says("one", "two")
    await agent.ask("count")
    (duration,), (first,) = meters.points(DURATION), meters.points(FIRST)
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted-model",
        "gen_ai.response.model": "scripted-model",
    }
    assert about.items() <= named(duration).items()
    assert (duration.count, first.count) == (1, 1)
    assert 0 < first.sum < duration.sum < 10
    tokens = {named(p)["gen_ai.token.type"]: p.sum for p in meters.points(TOKENS)}
    assert tokens == {"input": 10, "output": 5}


async def test_a_failure_is_measured_with_its_fault(daemons: Daemons) -> None:
    meters = Meters()
    daemon = await daemons.start(plugins=[meters.plugin()])
    agent = await daemon.agent(tools=[])
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    await agent.send("count")
    (point,) = meters.points(DURATION)
    assert named(point)["error.type"] == "bad_request"
    assert "gen_ai.response.model" not in named(point)
    assert TOKENS not in meters.all()


async def test_a_stop_is_no_error(daemons: Daemons) -> None:
    meters = Meters()
    daemon = await daemons.start(plugins=[meters.plugin()])
    agent = await daemon.agent(tools=[])
    daemon.model.says("one", Pause(), "two")
    turn = agent.start("count")
    await turn.seen("one")
    await turn.stop()
    (point,) = meters.points(DURATION)
    assert "error.type" not in named(point)


async def test_names_units_and_buckets_are_those_of_the_conventions(
    daemons: Daemons,
) -> None:
    meters = Meters()
    daemon = await daemons.start(plugins=[meters.plugin()])
    agent = await daemon.agent(tools=[])
    await agent.ask("count")
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    await agent.send("count")
    reference = InMemoryMetricReader()
    meter = MeterProvider([reference], shutdown_on_exit=False).get_meter("conventions")
    gen_ai_metrics.create_gen_ai_client_operation_duration(meter).record(1)
    gen_ai_metrics.create_gen_ai_client_operation_time_to_first_chunk(meter).record(1)
    gen_ai_metrics.create_gen_ai_client_token_usage(meter).record(1)
    data = reference.get_metrics_data()
    assert data is not None
    theirs = data.resource_metrics[0].scope_metrics[0].metrics
    ours = meters.all()
    assert {m.name: m.unit for m in theirs} == {n: m.unit for n, m in ours.items()}
    known = {
        value
        for of in (gen_ai_attributes, error_attributes, server_attributes)
        for value in vars(of).values()
        if isinstance(value, str)
    }
    used = {key for name in ours for p in meters.points(name) for key in named(p)}
    assert used <= known
    # As the page of the conventions lists them.
    seconds = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
    assert meters.points(DURATION)[0].explicit_bounds == pytest.approx(
        (*seconds, 10.24, 20.48, 40.96, 81.92)
    )
    tokens = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144)
    assert meters.points(TOKENS)[0].explicit_bounds == (
        *(*tokens, 1048576, 4194304, 16777216, 67108864),
    )


async def test_models_beyond_the_list_are_one_row(daemons: Daemons) -> None:
    meters = Meters()
    daemon = await daemons.start(plugins=[meters.plugin()])
    agent = await daemon.agent()
    target = daemon.daemon.models.resolve("scripted", "scripted-model")
    request = ChatRequest("m", "", ())
    for number in range(MOST_MODELS + 50):
        facts = replace(target.model, id=f"model-{number}")
        other = Target(target.provider, facts)
        activity = Activity("1", None, daemon.daemon, agent.context(), request, other)
        meters.measuring.ended(activity)
    assert len(meters.points(DURATION)) == MOST_MODELS + 1


async def test_nothing_that_was_said_is_in_the_metrics(daemons: Daemons) -> None:
    meters = Meters()
    environ = {"GROQ_API_KEY": CANARY}
    daemon = await daemons.start(plugins=[meters.plugin()], environ=environ)
    agent = await daemon.agent(name=f"agent-{CANARY}")
    daemon.model.calls("calculate", expression=f"{CANARY}+")
    daemon.model.says(CANARY)
    await agent.ask(f"my key is {CANARY}")
    assert CANARY not in str(meters.all())
