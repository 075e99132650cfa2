"""From a daemon's counts to the two text formats, with prometheus_client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter

from agenthost import Host
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from .meters import BUCKETS, Histogram, Meters

MICRO = 1e-6
GAUGES = {
    "model_breakers": "Models by key that cool down (open) or wait for a trial.",
    "model_key_calls": "Calls with each of a provider's keys, numbered from 1.",
    "model_key_refusals": "Calls that failed for their key, or the rate it is allowed.",
    "model_key_rests_until_timestamp_seconds": "When a key is called again.",
    "budget_usd": "The daemon's budgets: the limit, what is used of it and what held.",
    "agent_budget_usd": "The budgets of agents, those beyond the list as other.",
    "agent_budget_tokens": "The same in tokens.",
    "occasions": "Occasions of schedules and triggers that are not done yet.",
    "occasions_ended_in_day": "Those that ended within the last 24 hours.",
    "channel_connected": "Whether a chat channel is connected.",
    "channel_unanswered": "Messages of a channel that are not answered yet.",
    "channel_messages_in_day": "What was to be sent within the last 24 hours.",
}

Gauges = Iterable[tuple[str, Mapping[str, str], float]]
Counts = Iterable[tuple[tuple[str, ...], float]]


def expose(host: Host, meters: Meters, told: Gauges, accept: str) -> tuple[bytes, str]:
    """Write all metrics, and say in which content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(host, meters, told))
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Families(Collector):
    def __init__(self, host: Host, meters: Meters, told: Gauges) -> None:
        self._host = host
        self._told = told
        self._meters = meters

    def collect(self) -> Iterable[Metric]:
        """Give every family."""
        yield from self._turns()
        yield from self._calls()
        yield from self._models()
        yield from self._daemon_itself()

    def _turns(self) -> Iterator[Metric]:
        meters = self._meters
        yield _counter(
            "agenthost_turns", "Turns that ended.", ("outcome",), _single(meters.turns)
        )
        yield _histogram(
            "agenthost_turn_seconds",
            "How long turns took, their wait for the session included.",
            (),
            [((), meters.turn_seconds)],
        )
        running = self._host.turns.running
        yield _gauge("agenthost_running_turns", "Turns that run or wait.", running)

    def _calls(self) -> Iterator[Metric]:
        meters = self._meters
        yield _counter(
            "agenthost_model_calls",
            "Model calls that ended.",
            ("provider", "model", "outcome"),
            meters.model_calls.items(),
        )
        yield _histogram(
            "agenthost_model_call_seconds",
            "How long model calls took, all tries and their pauses included.",
            ("provider", "model"),
            meters.call_seconds.items(),
        )
        yield _histogram(
            "agenthost_model_first_chunk_seconds",
            "Seconds until the first piece of an answer, of the try that answered.",
            ("provider", "model"),
            meters.first_seconds.items(),
        )
        yield _counter(
            "agenthost_model_failed_tries",
            "Tries of model calls that gave no answer.",
            ("provider", "model", "outcome"),
            meters.failed_tries.items(),
        )
        yield _counter(
            "agenthost_tokens",
            "Tokens by kind; cached and cache_write are part of input, reasoning of "
            "output.",
            ("provider", "model", "kind"),
            meters.tokens.items(),
        )
        yield _counter(
            "agenthost_cost_usd",
            "Cost of model calls in US dollars.",
            ("provider", "model"),
            ((names, micro * MICRO) for names, micro in meters.cost.items()),
        )
        yield _counter(
            "agenthost_tool_calls",
            "Tool calls that ended.",
            ("tool", "outcome"),
            meters.tool_calls.items(),
        )

    def _models(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for name, labels, number in (*self._host.models.gauges(), *self._told):
            if name not in families:
                families[name] = _family(name, [*labels])
            families[name].add_metric([*labels.values()], number)
        yield from families.values()

    def _daemon_itself(self) -> Iterator[Metric]:
        host = self._host
        panics = CounterMetricFamily(
            "agenthost_http_panics", "Requests that ended in an unforeseen error."
        )
        panics.add_metric((), host.panics)
        yield panics
        states = Counter(state.status.value for state in host.plugins.states())
        plugins = GaugeMetricFamily(
            "agenthost_plugins", "Installed plugins by status.", labels=("status",)
        )
        for status in ("enabled", "disabled", "failed"):
            plugins.add_metric((status,), states[status])
        yield plugins
        yield from self._time_of_plugins()
        yield _gauge(
            "agenthost_store_healthy",
            "1 while the database can be written and read.",
            int(host.store.healthy),
        )

    def _time_of_plugins(self) -> Iterator[Metric]:
        # Copied at once: other threads open accounts meanwhile.
        accounts = tuple(self._host.plugins.charges.accounts.items())
        for name, text, field in (
            ("calls", "Calls of plugins' code by the kernel.", "calls"),
            ("seconds", "Seconds that those took, waits included.", "seconds"),
            ("stalls", "Times the event loop stood still in it.", "stalls"),
            ("stalled_seconds", "Seconds it stood still there.", "stalled"),
        ):
            counts = (((key,), getattr(account, field)) for key, account in accounts)
            yield _counter(f"agenthost_plugin_{name}", text, ("plugin",), counts)


def _family(
    told: str, labels: Sequence[str]
) -> GaugeMetricFamily | CounterMetricFamily:
    name = told.removesuffix("_total")
    text = GAUGES.get(name, "As a plugin tells.")
    kind = GaugeMetricFamily if name == told else CounterMetricFamily
    return kind(f"agenthost_{name}", text, labels=labels)


def _single(counts: Mapping[str, int]) -> Counts:
    return (((name,), count) for name, count in counts.items())


def _counter(
    name: str,
    text: str,
    labels: Sequence[str],
    counts: Counts,
) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for names, count in sorted(counts):
        family.add_metric(names, count)
    return family


def _histogram(
    name: str,
    text: str,
    labels: Sequence[str],
    measured: Iterable[tuple[tuple[str, ...], Histogram]],
) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    bounds = [*map(str, BUCKETS), "+Inf"]
    for names, histogram in sorted(measured, key=itemgetter(0)):
        counts = accumulate(histogram.counts)
        buckets = list(zip(bounds, counts, strict=True))
        family.add_metric(names, buckets, histogram.sum)
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
