"""What ``/metrics`` says, read with prometheus_client's own parsers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import (
    Activity,
    ChatRequest,
    Host,
    Observer,
    ProviderFault,
    ServiceSpec,
    Target,
    hookimpl,
)
from agenthost.testing import Daemons, Pause, RunningDaemon
from agenthost_observability.listing import MOST_MODELS, OTHER
from agenthost_observability.meters import Meters
from prometheus_client import parser
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.plugins.models.upstream import Fails, Upstream

CANARY = "canary-7f3a9c1e5b"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


async def scrape(daemon: RunningDaemon) -> dict[tuple[str, str], float]:
    """Every sample by its name and its labels in order of their names."""
    answer = await daemon.http.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))): (
            sample.value
        )
        for family in parser.text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_time_and_stalls_of_plugins_are_counted(daemon: RunningDaemon) -> None:
    account = daemon.daemon.plugins.charges.of("tool:calculate")
    account.stalls, account.stalled = 2, 3.5
    told = await scrape(daemon)
    plugin = "plugin=tool:calculate"
    assert told["agenthost_plugin_calls_total", plugin] == account.calls >= 2
    assert told["agenthost_plugin_seconds_total", plugin] == account.seconds > 0
    assert told["agenthost_plugin_stalls_total", plugin] == 2
    assert told["agenthost_plugin_stalled_seconds_total", plugin] == 3.5


async def test_turns_calls_tokens_and_cost_are_counted(daemon: RunningDaemon) -> None:
    agent = await daemon.agent(tools=["calculate"])
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.calls("kv_set", key="self.a", value="b")
    daemon.model.calls("no_such_tool")
    daemon.model.says("two")
    await agent.ask("what is 1+1?")
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    await agent.send("again")
    found = await scrape(daemon)
    model = "model=scripted-model"
    by = f"{model},outcome={{}},provider=scripted"
    kind = f"kind={{}},{model},provider=scripted"
    assert found["agenthost_turns_total", "outcome=ok"] == 1
    assert found["agenthost_turns_total", "outcome=bad_request"] == 1
    assert found["agenthost_turn_seconds_count", ""] == 2
    assert found["agenthost_turn_seconds_bucket", "le=+Inf"] == 2
    assert found["agenthost_model_calls_total", by.format("ok")] == 4
    assert found["agenthost_model_calls_total", by.format("bad_request")] == 1
    assert found["agenthost_tokens_total", kind.format("input")] == 40
    assert found["agenthost_tokens_total", kind.format("output")] == 20
    assert found["agenthost_cost_usd_total", f"{model},provider=scripted"] == (
        pytest.approx(80e-6)
    )
    assert found["agenthost_tool_calls_total", "outcome=ok,tool=calculate"] == 1
    assert found["agenthost_tool_calls_total", "outcome=denied,tool=kv_set"] == 1
    assert found["agenthost_tool_calls_total", "outcome=error,tool=other"] == 1


async def test_the_daemon_itself_is_measured(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says(pause, "done")
    agent = await daemon.agent()
    turn = agent.start("wait")
    await pause.reached.wait()
    found = await scrape(daemon)
    pause.go_on()
    await turn.result()
    assert found["agenthost_running_turns", ""] == 1
    assert found["agenthost_store_healthy", ""] == 1
    assert found["agenthost_http_panics_total", ""] == 0
    assert found["agenthost_plugins", "status=failed"] == 0
    assert found["agenthost_plugins", "status=enabled"] > 10
    assert found["process_resident_memory_bytes", ""] > 1_000_000
    assert found["process_cpu_seconds_total", ""] > 0


async def test_stopped_turns_and_broken_plugins_are_counted(daemons: Daemons) -> None:
    def register_observer() -> list[Observer]:
        raise RuntimeError("not today")

    broken = SimpleNamespace(
        __name__="broken", register_observer=hookimpl(register_observer)
    )
    daemon = await daemons.start(plugins=[broken])
    agent = await daemon.agent()
    daemon.model.says("one", Pause())
    turn = agent.start("count")
    await turn.seen("one")
    await turn.stop()
    found = await scrape(daemon)
    assert found["agenthost_turns_total", "outcome=cancelled"] == 1
    assert found["agenthost_plugins", "status=failed"] == 1


async def test_openmetrics_is_served_on_demand(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("hello")
    answer = await daemon.http.get("/metrics", headers={"accept": OPENMETRICS})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    parse: Callable[[str], Iterable[Metric]] = text_string_to_metric_families
    families = {family.name: family for family in parse(answer.text)}
    assert families["agenthost_turns"].type == "counter"
    assert families["agenthost_turn_seconds"].type == "histogram"


async def test_metrics_are_behind_the_key(daemons: Daemons) -> None:
    daemon = await daemons.start(environ={"AGENTHOST_API_KEY": CANARY})
    assert (await daemon.http.get("/metrics")).status_code == 401
    daemon.http.headers["authorization"] = f"Bearer {CANARY}"
    assert await scrape(daemon)


async def test_nothing_that_was_said_is_in_the_metrics(daemons: Daemons) -> None:
    daemon = await daemons.start(environ={"GROQ_API_KEY": CANARY})
    agent = await daemon.agent(name=f"agent-{CANARY}")
    daemon.model.calls("calculate", expression=f"{CANARY}+")
    daemon.model.calls(f"tool-{CANARY}")
    daemon.model.says(CANARY)
    await agent.ask(f"my key is {CANARY}")
    assert CANARY not in (await daemon.http.get("/metrics")).text


async def test_models_beyond_the_list_count_as_other(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    target = daemon.daemon.models.resolve("scripted", "scripted-model")
    meters, request = Meters(), ChatRequest("m", "", ())
    for number in range(MOST_MODELS + 50):
        facts = replace(target.model, id=f"model-{number}")
        other = Target(target.provider, facts)
        meters.ended(
            Activity("1", None, daemon.daemon, agent.context(), request, other)
        )
    names = {model for _, model, _ in meters.model_calls}
    assert len(names) == MOST_MODELS + 1
    assert meters.model_calls["scripted", OTHER, "ok"] == 50


async def test_scrapes_at_once_agree(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("hello")
    answers: list[dict[Any, float]] = await asyncio.gather(
        *(scrape(daemon) for _ in range(5))
    )
    turns = {answer["agenthost_turns_total", "outcome=ok"] for answer in answers}
    assert turns == {1.0}


async def test_tries_and_times_of_model_calls_are_counted(daemons: Daemons) -> None:
    config = '[[fallback_providers]]\nprovider = "offline"\n'
    daemon = await daemons.start(config=config)
    agent = await daemon.agent(tools=[])
    daemon.model.says("one", "two")
    await agent.ask("hi")
    daemon.model.fails(ProviderFault.BILLING)
    await agent.ask("hi")
    found = await scrape(daemon)
    asked = "model=scripted-model,provider=scripted"
    assert found["agenthost_model_call_seconds_count", asked] == 2
    assert found["agenthost_model_call_seconds_sum", asked] > 0
    assert found["agenthost_model_first_chunk_seconds_count", asked] == 1
    answered = "model=offline,provider=offline"
    assert found["agenthost_model_first_chunk_seconds_count", answered] == 1
    failed = "model=scripted-model,outcome=billing,provider=scripted"
    assert found["agenthost_model_failed_tries_total", failed] == 1


async def test_breakers_that_are_not_closed_are_shown(daemons: Daemons) -> None:
    config = '[[fallback_providers]]\nprovider = "offline"\n'
    daemon = await daemons.start(config=config)
    agent = await daemon.agent(tools=[])
    daemon.model.fails(ProviderFault.BILLING)
    await agent.ask("hi")
    found = await scrape(daemon)
    state = "provider=scripted,state={}"
    assert found["agenthost_model_breakers", state.format("open")] == 1
    assert ("agenthost_model_breakers", state.format("half_open")) not in found


async def test_keys_are_shown_by_their_places(daemons: Daemons) -> None:
    upstream = Upstream("keyed", key_required=True)
    upstream.by_key = {"bad": deque([Fails(ProviderFault.RATE_LIMITED, "", 90.0)])}
    daemon = await daemons.start(
        plugins=[upstream.plugin],
        environ={"KEYED_KEY": "bad", "KEYED_KEY_2": CANARY, "KEYED_KEY_3": "idle"},
    )
    agent = await daemon.agent(tools=[], extra='[model]\nprovider = "keyed"\n')
    for _ in range(2):
        assert await agent.ask("hi") == "fine"
    found = await scrape(daemon)
    calls, refusals = "agenthost_model_key_calls_total", "outcome={},provider=keyed"
    told = [found[calls, f"key={n},provider=keyed"] for n in (1, 2, 3)]
    assert told == [1, 2, 0]
    limited = refusals.format("rate_limited")
    told = [
        found["agenthost_model_key_refusals_total", f"key={n},{limited}"]
        for n in (1, 2, 3)
    ]
    assert told == [1, 0, 0]
    rests = "agenthost_model_key_rests_until_timestamp_seconds"
    now = daemon.daemon.clock.time()
    assert 30 < found[rests, "key=1,provider=keyed"] - now < 91
    assert (rests, "key=2,provider=keyed") not in found
    rows = (await daemon.http.get("/api/providers")).json()["providers"]
    (row,) = (row for row in rows if row["name"] == "keyed")
    (resting,) = row["resting"]
    assert (resting["key"], resting["fault"]) == (1, "rate_limited")
    assert CANARY not in (await daemon.http.get("/metrics")).text + repr(rows)


async def test_a_key_that_takes_anothers_place_begins_at_zero(daemons: Daemons) -> None:
    upstream = Upstream("keyed", key_required=True)
    daemon = await daemons.start(
        plugins=[upstream.plugin], environ={"KEYED_KEY": "old"}
    )
    agent = await daemon.agent(tools=[], extra='[model]\nprovider = "keyed"\n')
    await agent.ask("hi")
    row = ("agenthost_model_key_calls_total", "key=1,provider=keyed")
    assert (await scrape(daemon))[row] == 1
    await daemon.http.post("/api/providers/keyed/key", json={"api_key": "new"})
    assert (await scrape(daemon))[row] == 0


async def test_budgets_of_agents_are_shown_by_their_ids(daemons: Daemons) -> None:
    daemon = await daemons.start()
    limits = "[resources]\nmax_cost_per_day_usd = 0.5\nmax_llm_tokens_per_hour = 900\n"
    agent = await daemon.agent(name=f"agent-{CANARY}", tools=[], extra=limits)
    await agent.ask("hi")
    found = await scrape(daemon)
    row = f"agent={agent.id},budget=resources.{{}},kind={{}}"
    money, tokens = "max_cost_per_day_usd", "max_llm_tokens_per_hour"
    for kind, amount in (("limit", 0.5), ("used", 20e-6), ("held", 0)):
        told = found["agenthost_agent_budget_usd", row.format(money, kind)]
        assert told == pytest.approx(amount)
    for kind, amount in (("limit", 900), ("used", 15), ("held", 0)):
        told = found["agenthost_agent_budget_tokens", row.format(tokens, kind)]
        assert told == amount
    assert CANARY not in (await daemon.http.get("/metrics")).text


async def test_budgets_are_shown_with_what_is_used_and_held(daemons: Daemons) -> None:
    config = "[budget]\nmax_hourly_usd = 0.5\nmax_daily_usd = 2.0\n"
    daemon = await daemons.start(config=config)
    agent = await daemon.agent(tools=[])
    daemon.model.says("hello")
    await agent.ask("hi")
    pause = Pause()
    daemon.model.says(pause, "done")
    turn = agent.start("wait")
    await pause.reached.wait()
    found = await scrape(daemon)
    pause.go_on()
    await turn.result()
    row = "budget=budget.{},kind={}"
    for name, dollars in (("max_hourly_usd", 0.5), ("max_daily_usd", 2.0)):
        assert found["agenthost_budget_usd", row.format(name, "limit")] == dollars
        used = found["agenthost_budget_usd", row.format(name, "used")]
        assert used == pytest.approx(20e-6)
        assert found["agenthost_budget_usd", row.format(name, "held")] > 0
    after = await scrape(daemon)
    assert after["agenthost_budget_usd", row.format("max_daily_usd", "held")] == 0


class Telling(ServiceSpec):
    """A service that a monitor may look at."""

    async def gauges(self, host: Host) -> list[tuple[str, dict[str, str], float]]:
        """Tell what its name says."""
        if self.name == "broken":
            raise KeyError(CANARY)
        if self.name == "hanging":
            await asyncio.Event().wait()
        if self.name == "misnamed":
            return [("a b{", {}, 1.0)]
        return [("rockets", {"pad": "one"}, 3), ("starts_total", {}, 7)]


async def test_services_of_plugins_are_asked_and_none_spoils_the_page(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_observability.gauges.SECONDS", 0.05)

    async def nothing(_: Host) -> None:
        return

    @hookimpl
    def register_service() -> Iterable[ServiceSpec]:
        for name in ("broken", "hanging", "misnamed", "good"):
            yield Telling(name, nothing, nothing)

    plugin = SimpleNamespace(__name__="rockets", register_service=register_service)
    rows = await scrape(await daemons.start(plugins=[plugin]))
    assert rows["agenthost_rockets", "pad=one"] == 3
    assert rows["agenthost_starts_total", ""] == 7
    assert rows["agenthost_store_healthy", ""] == 1
    assert rows["agenthost_occasions", "source=schedule,state=due"] == 0
    assert not any(name.startswith("agenthost_a") for name, _ in rows)
