"""Which of a call's targets goes first, where they count as equals."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from random import Random
from typing import Protocol

from agenthost import ChatRequest, Clock, Payer, Role, Target, Usage

from .attempts import Candidate
from .breaker import MOST, Breakers
from .budget import Budgets, unpriced
from .estimate import LIKELY_ANSWER, measure
from .price import price

EXPLORED = 0.05
"""The share of calls that go to another target than the best, to learn of it."""
NEARLY = 1.25
"""Who takes no longer than this many times the best is as quick as the best."""
WEIGHT = 0.3
"""What the newest measurement counts in an average."""

Names = tuple[str, str]
"""A provider's slug and a model's id."""


class Run(Protocol):
    """A call that runs: when it began, and when its first piece came; 0 is not yet."""

    began: float
    first: float


class Latencies:
    """How soon each target begins to answer: moving averages, and what runs now."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._averages: OrderedDict[Names, float] = OrderedDict()
        self._running: defaultdict[Names, dict[int, Run]] = defaultdict(dict)

    def began(self, names: Names, run: Run) -> None:
        """A call of a target begins."""
        self._running[names][id(run)] = run

    def ended(self, names: Names, run: Run) -> None:
        """It has ended; silence tells only that an answer takes longer than that."""
        running = self._running[names]
        running.pop(id(run), None)
        if not running:
            del self._running[names]
        known = self._averages.get(names)
        seconds = (run.first or self._clock.monotonic()) - run.began
        if not run.first and (known is None or seconds <= known):
            return
        old = seconds if known is None else known
        self._averages[names] = old + WEIGHT * (seconds - old)
        self._averages.move_to_end(names)
        while len(self._averages) > MOST:
            self._averages.popitem(last=False)

    def order(self, targets: Sequence[Names], *, explore: bool) -> list[Names]:
        """Put the quickest first; who was never measured comes last, as written.

        Those that are nearly as quick as the best share its calls. Now and then one
        that nobody asks just now goes first: so few calls find out that it is slow.
        """
        taken = {each: self._seconds(each) for each in targets}
        best = min(taken.values(), default=math.inf)
        ordered = sorted(targets, key=lambda each: self._key(each, taken[each], best))
        idle = [each for each in ordered[1:] if each not in self._running]
        if explore and idle and self._random.random() < EXPLORED:
            chosen = self._random.choice(idle)
            ordered.remove(chosen)
            ordered.insert(0, chosen)
        return ordered

    def _key(self, names: Names, seconds: float, best: float) -> tuple[float, int]:
        if best < math.inf and seconds <= NEARLY * best:
            return 0.0, len(self._running.get(names, ()))
        return seconds, 0

    def _seconds(self, names: Names) -> float:
        """Give the average, or how long a call has waited already where that is more.

        Without that, all would go on to a target that has stopped answering.
        """
        known = self._averages.get(names)
        if known is None:
            return math.inf
        now = self._clock.monotonic()
        running = self._running.get(names, {}).values()
        waiting = (each.began for each in running if not each.first)
        return max(known, now - min(waiting, default=now))


class Preference:
    """Puts the targets of a call in the order that the configuration asks for."""

    def __init__(
        self, budgets: Budgets, breakers: Breakers, latencies: Latencies, clock: Clock
    ) -> None:
        self._budgets = budgets
        self._breakers = breakers
        self._latencies = latencies
        self._clock = clock

    async def order(
        self,
        policy: str,
        candidates: list[Candidate],
        request: ChatRequest,
        payer: Payer,
    ) -> list[Candidate]:
        """Order candidates by their targets; the keys of each stay as they are.

        Who will have no room in the budgets is left out, unless nobody has any.
        """
        targets = {each.target.names: each.target for each in candidates}
        if len(targets) < 2:
            return candidates
        waits = await self._budgets.waits(payer, targets.values(), request)
        if policy == "cost":
            preferred = _cheapest(targets, request)
        else:
            preferred = self._quickest(candidates, request, waits)
        order = [*dict.fromkeys([*preferred, *targets])]
        most = max(1, min(waits.values()))
        kept = [each for each in candidates if waits[each.target.names] <= most]
        return sorted(kept, key=lambda each: order.index(each.target.names))

    def _quickest(
        self,
        candidates: list[Candidate],
        request: ChatRequest,
        waits: dict[Names, int],
    ) -> list[Names]:
        """Order those that neither rest nor wait for a budget."""
        now, ready = self._clock.monotonic(), self._breakers.ready_at
        fit = (each.target.names for each in candidates if ready(each.id) <= now)
        free = dict.fromkeys(names for names in fit if not waits[names])
        # Inside a tool loop a model goes on from what it has thought itself.
        looping = any(each.role is Role.TOOL for each in request.messages[-1:])
        return self._latencies.order([*free], explore=not looping)


def _cheapest(targets: dict[Names, Target], request: ChatRequest) -> list[Names]:
    prompt = measure(request).likely
    costs = {names: _cost(each, request, prompt) for names, each in targets.items()}
    return sorted(targets, key=costs.__getitem__)


def _cost(target: Target, request: ChatRequest, prompt: int) -> float:
    """Price a call as it is likely to be, the same tokens for every model."""
    if unpriced(target):
        return math.inf
    answer = min(request.max_tokens or LIKELY_ANSWER, LIKELY_ANSWER)
    return price(target.model, Usage(prompt, answer))
