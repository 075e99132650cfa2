"""The counts of a daemon, kept as plain numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable

from agenthost import (
    Activity,
    ChatRequest,
    Host,
    Observer,
    Spent,
    ToolUse,
    Usage,
)

from .endings import first_chunk, word_of
from .listing import OTHER, OTHERS, Listing, Model

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Histogram:
    """How often what was measured fell into which bucket, and the sum of it."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Count a measurement."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds


class Meters(Observer):
    """The counts of one daemon; plain numbers until somebody asks for them."""

    def __init__(self) -> None:
        self.turns: Counter[str] = Counter()
        self.turn_seconds = Histogram()
        self.model_calls: Counter[tuple[str, str, str]] = Counter()
        self.call_seconds: defaultdict[Model, Histogram] = defaultdict(Histogram)
        self.first_seconds: defaultdict[Model, Histogram] = defaultdict(Histogram)
        self.failed_tries: Counter[tuple[str, str, str]] = Counter()
        self.tokens: Counter[tuple[str, str, str]] = Counter()
        self.cost: Counter[Model] = Counter()
        self.tool_calls: Counter[tuple[str, str]] = Counter()
        self._listing = Listing()

    def ended(self, activity: Activity) -> None:
        """Count it."""
        match activity.subject:
            case ChatRequest():
                self._model_call(activity)
            case ToolUse(name=name):
                tool = _tool(activity.host, name)
                self.tool_calls[tool, word_of(activity)] += 1
            case _:
                self.turns[word_of(activity)] += 1
                self.turn_seconds.add(activity.seconds)

    def _model_call(self, activity: Activity) -> None:
        target = activity.target
        asked = (target.provider.facts.slug, target.model.id) if target else OTHERS
        named = self._listing.listed(asked)
        self.model_calls[*named, word_of(activity)] += 1
        self.call_seconds[named].add(activity.seconds)
        if activity.spent is not None:
            answered = self._count(activity.spent)
            if (seconds := first_chunk(activity)) is not None:
                self.first_seconds[answered].add(seconds)
        for failed in activity.failed:
            tried = self._listing.listed(failed.target.names)
            self.failed_tries[*tried, failed.outcome] += 1
            if failed.spent is not None:
                self._count(failed.spent)

    def _count(self, spent: Spent) -> Model:
        """Count what was booked, on the model that took it, and tell which."""
        named = self._listing.listed((spent.provider, spent.model))
        self.cost[named] += spent.cost_micro_usd
        for kind, tokens in _tokens(spent.usage):
            self.tokens[*named, kind] += tokens
        return named


def _tool(host: Host, name: str) -> str:
    """The tool's own name; one that a model made up counts as other."""
    tool = host.toolbox.tools.get(name)
    return OTHER if tool is None else tool.definition.name


def _tokens(usage: Usage) -> Iterable[tuple[str, int]]:
    return (
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cached", usage.cached_tokens),
        ("cache_write", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    )
