"""The counts of a daemon, kept as plain numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

from agenthost import (
    Activity,
    ChatRequest,
    Host,
    Observer,
    Spent,
    ToolSpec,
    ToolUse,
    Usage,
)

from .endings import word_of

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
MOST_MODELS = 200
OTHER = "other"

Model = tuple[str, str]
OTHERS: Model = (OTHER, OTHER)


class Meters(Observer):
    """The counts of one daemon; plain numbers until somebody asks for them."""

    def __init__(self) -> None:
        self.turns: Counter[str] = Counter()
        self.turn_seconds = 0.0
        self.turn_buckets = [0] * (len(BUCKETS) + 1)
        self.model_calls: Counter[tuple[str, str, str]] = Counter()
        self.tokens: Counter[tuple[str, str, str]] = Counter()
        self.cost: Counter[Model] = Counter()
        self.tool_calls: Counter[tuple[str, str]] = Counter()
        self._models: set[Model] = set()

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
                self.turn_seconds += activity.seconds
                self.turn_buckets[bisect_left(BUCKETS, activity.seconds)] += 1

    def _model_call(self, activity: Activity) -> None:
        target = activity.target
        asked = (target.provider.facts.slug, target.model.id) if target else OTHERS
        provider, model = self._listed(asked)
        self.model_calls[provider, model, word_of(activity)] += 1
        for spent in (activity.spent, *(each.spent for each in activity.failed)):
            if spent is not None:
                self._count(spent)

    def _count(self, spent: Spent) -> None:
        """Count what was booked, on the model that took it."""
        provider, model = self._listed((spent.provider, spent.model))
        self.cost[provider, model] += spent.cost_micro_usd
        for kind, tokens in _tokens(spent.usage):
            self.tokens[provider, model, kind] += tokens

    def _listed(self, named: Model) -> Model:
        """The labels of a model; an agent may name any, so the list has an end."""
        if named not in self._models:
            if len(self._models) >= MOST_MODELS:
                return named[0], OTHER
            self._models.add(named)
        return named


def _tool(host: Host, name: str) -> str:
    """The tool's own name; one that a model made up counts as other."""
    offered = host.registry.offered(ToolSpec)
    return next((spec.name for _, spec in offered if name in spec.names), OTHER)


def _tokens(usage: Usage) -> Iterable[tuple[str, int]]:
    yield "input", usage.input_tokens
    yield "output", usage.output_tokens
    yield "cached", usage.cached_tokens
    yield "cache_write", usage.cache_write_tokens
    yield "reasoning", usage.reasoning_tokens
