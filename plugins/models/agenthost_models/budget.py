"""Budgets: room is held before a call and what it cost is counted after it."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from heapq import nlargest
from typing import TYPE_CHECKING

from agenthost import (
    AgentView,
    BudgetAlert,
    BudgetExceeded,
    ChatRequest,
    Host,
    ModelFacts,
    Payer,
    Pool,
    PoolSpent,
    QuotaEvent,
    QuotaExceeded,
    Target,
    Usage,
)
from agenthost_values.value_class import value_class

from .estimate import Counts, Prompt, measure
from .manifest import SPENDING
from .meters import Limit, Meter, PoolRoom, Room
from .price import price, writes_cost_more
from .settings import Budget
from .waiting import until

if TYPE_CHECKING:
    from agenthost import Agent, Spent

HOUR = 3_600.0
DAY = 24 * HOUR
MONTH = 30 * DAY
MOST_AGENTS = 4_096
MOST_TOLD = 50
"""Agents whose budgets a monitor is told one by one."""
ANSWER = 8_192
"""Tokens an answer may take under a budget when nobody says how long it may be."""
LEAST_ANSWER = 256
LONGEST_WAIT = 30.0
"""Seconds that a call waits for others to give back what they hold."""
MILLION = 1_000_000
UNLIMITED = Pool().limit
Rooms = list[Meter | PoolRoom]


@value_class
class Hold:
    """What a call holds, and the request as the budgets let it pass.

    ``prompt`` is measured only where there is a limit.
    """

    request: ChatRequest
    parts: tuple[tuple[Room, int], ...] = ()
    prompt: Prompt | None = None


@value_class
class _Wish:
    """A call that wants room, and its prompt as it was measured."""

    target: Target
    request: ChatRequest
    prompt: Prompt


class Budgets:
    """The limits of the daemon, of each agent and of runs.

    Windows are read from the ledger once, at the first call that needs them, and kept
    in memory from then on; without a limit nothing is read at all.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._settings = host.settings(Budget)
        # Read twice at once, what is spent between the two reads would be lost.
        self._loading = asyncio.Lock()
        self._of_daemon: list[Meter] | None = None
        self._agents: OrderedDict[str, list[Meter]] = OrderedDict()
        self._counts = Counts()
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(
        self, payer: Payer | None, target: Target, request: ChatRequest
    ) -> Hold:
        """Hold room for the dearest that the call can come to.

        An answer is shortened to what the budgets can pay, down to 256 tokens. What
        other calls hold is waited for, up to ``LONGEST_WAIT`` seconds.

        Raises:
            QuotaExceeded: Naming the limit, what was used and what helps.
        """
        rooms = await self._rooms(payer)
        counted = _counted(payer.pools) if payer is not None and payer.pools else ()
        if not rooms:
            return Hold(request, counted)
        wish = _Wish(target, request, measure(request))
        _check_priced(target, rooms)
        hold = self._hold(rooms, wish)
        if not isinstance(hold, Hold):
            hold = await self._waited(rooms, wish)
        return replace(hold, parts=(*hold.parts, *counted)) if counted else hold

    async def waits(
        self, payer: Payer, targets: Iterable[Target], request: ChatRequest
    ) -> dict[tuple[str, str], int]:
        """Tell of targets whether a call fits now (0), once others end (1), or not (2).

        Nothing is held for it.
        """
        rooms = await self._rooms(payer)
        prompt = measure(request) if rooms else Prompt(0, 0, 0)
        return {
            each.names: self._wait(rooms, _Wish(each, request, prompt))
            for each in targets
        }

    def settle(self, hold: Hold, spent: Spent | None) -> None:
        """Give back what was held and count what the call has cost."""
        now = self._host.clock.time()
        for room, held in hold.parts:
            room.settle(held, _amount(room, spent), now)
            if isinstance(room, Meter):
                self._alert(room, now)
        # All look again: which of them fits now, only each of them knows.
        waiting, self._waiting = self._waiting, []
        for woken in waiting:
            if not woken.done():
                woken.set_result(None)

    def learn(self, hold: Hold, target: Target, counted: int) -> None:
        """Take note of what the vendor counted for a prompt that was measured."""
        if hold.prompt is not None:
            self._counts.learn(target.names, hold.prompt, counted)

    def quote(self, target: Target, request: ChatRequest) -> tuple[int, int, int]:
        """Tell a call's tokens in, tokens out and micro-USD, each at most."""
        prompt = self._counts.most(target.names, measure(request))
        answer = _asked(target.model, request)
        return prompt, answer, _dearest(target.model, prompt, answer)

    def gauges(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """What limits there are, and how much of them is used and held.

        What is used is known from the first model call on. Of agents, those that are
        nearest to a limit are told by their ids, the rest in one.
        """
        now = self._host.clock.time()
        for meter in self._of_daemon or ():
            for kind, amount in _told(meter, now):
                labels = {"budget": meter.limit.name, "kind": kind}
                yield "budget_usd", labels, amount / MILLION
        yield from _of_agents(self._agents, now)

    async def _rooms(self, payer: Payer | None) -> Rooms:
        """Give what a call draws from."""
        rooms: Rooms = [*await self._daemon_meters()]
        if payer is not None:
            if payer.agent is not None:
                rooms += await self._agent_meters(payer.agent)
                if payer.agent.parent:
                    rooms += await self._meters_above(payer.agent.parent)
            if payer.pools:
                limited = (each for each in payer.pools if each.limit < UNLIMITED)
                rooms += map(PoolRoom, limited)
        return rooms

    def _wait(self, rooms: Rooms, wish: _Wish) -> int:
        if not rooms:
            return 0
        if _of_money(rooms) is not None and unpriced(wish.target):
            return 2
        hold = self._hold(rooms, wish)
        if isinstance(hold, Hold):
            for room, held in hold.parts:
                room.held -= held
            return 0
        return 1 if isinstance(self._hold(rooms, wish, 0), Hold) else 2

    async def _waited(self, rooms: Rooms, wish: _Wish) -> Hold:
        """Hold room once others have given back what they hold."""
        clock = self._host.clock
        deadline = clock.monotonic() + LONGEST_WAIT
        while isinstance(hold := self._hold(rooms, wish), Meter | PoolRoom):
            left = deadline - clock.monotonic()
            # Without what others hold: is there any use in waiting?
            if left <= 0 or not isinstance(self._hold(rooms, wish, 0), Hold):
                raise self._refused(hold, clock.time())
            woken = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            try:
                await until(woken, clock, left)
            finally:
                if woken in self._waiting:
                    self._waiting.remove(woken)
        return hold

    def _hold(
        self, rooms: Rooms, wish: _Wish, held: int = 1
    ) -> Hold | Meter | PoolRoom:
        """Check and hold in one step: nothing else runs between the two.

        Args:
            rooms: What the call draws from.
            wish: The call.
            held: 0 to ask only whether there was room if nobody else held any.

        Returns:
            The hold, or the limit that leaves no room.
        """
        now = self._host.clock.time()
        model, request = wish.target.model, wish.request
        prompt = self._counts.most(wish.target.names, wish.prompt)
        asked = _asked(model, request)
        answer = asked
        cost = _dearest(model, prompt, asked)
        free = [room.limit.amount - room.used(now) - held * room.held for room in rooms]
        for room, left in zip(rooms, free, strict=True):
            if room.limit.tokens:
                if left <= 0:
                    return room
                continue
            if cost <= left:
                continue
            answer = min(answer, _affordable(model, prompt, left))
            if answer < min(asked, LEAST_ANSWER):
                return room
        if answer < asked:
            cost = _dearest(model, prompt, answer)
        parts = [
            (room, min(prompt + answer, left) if room.limit.tokens else cost)
            for room, left in zip(rooms, free, strict=True)
        ]
        for room, amount in parts:
            room.held += held * amount
        if any(not room.limit.tokens for room in rooms):
            request = replace(request, max_tokens=answer)
        return Hold(request, tuple(parts), wish.prompt)

    def _refused(self, room: Room, now: float) -> QuotaExceeded:
        self._tell(BudgetExceeded, room, now)
        return _refusal(room, now)

    def _alert(self, meter: Meter, now: float) -> None:
        used, limit = meter.used(now), meter.limit
        mark = limit.amount * self._settings.alert_threshold
        if used < mark or not used or now < meter.quiet_until:
            return
        meter.quiet_until = now + limit.span
        self._tell(BudgetAlert, meter, now)

    def _tell(self, kind: type[QuotaEvent], room: Room, now: float) -> None:
        events, limit = self._host.events, room.limit
        if events.wants(kind):
            unit = "tokens" if limit.tokens else "micro_usd"
            told = (limit.name, unit, room.used(now), limit.amount)
            events.publish(kind(room.subject, now, *told))

    async def _daemon_meters(self) -> list[Meter]:
        if self._of_daemon is None:
            async with self._loading:
                if self._of_daemon is None:
                    limits = _daemon_limits(self._host)
                    self._of_daemon = await self._loaded("daemon", "", limits)
        return self._of_daemon

    async def _agent_meters(self, agent: AgentView) -> list[Meter]:
        default = self._settings.default_max_llm_tokens_per_hour
        limits = list(_agent_limits(agent, default))
        if not limits:
            return []
        if not self._known(agent.id, limits):
            async with self._loading:
                if not self._known(agent.id, limits):
                    self._agents[agent.id] = await self._loaded(
                        f"agent {agent.name!r}", agent.id, limits
                    )
                    self._forget_idle()
        self._agents.move_to_end(agent.id)
        return self._agents[agent.id]

    async def _meters_above(self, parent: str) -> Rooms:
        """Give the limits of those that have spawned an agent: it spends theirs too."""
        rooms: Rooms = []
        for each in self._host.agents.above(parent):
            view = AgentView(each.id, each.name, each.manifest, each.session_id)
            rooms += await self._agent_meters(view)
        return rooms

    def _known(self, agent_id: str, limits: list[Limit]) -> bool:
        meters = self._agents.get(agent_id)
        return meters is not None and [m.limit for m in meters] == limits

    def _forget_idle(self) -> None:
        for agent_id, meters in list(self._agents.items())[:-1]:
            if len(self._agents) <= MOST_AGENTS:
                return
            if not any(meter.held for meter in meters):
                del self._agents[agent_id]

    async def _loaded(
        self, subject: str, agent_id: str, limits: Iterable[Limit]
    ) -> list[Meter]:
        payers = family(self._host.agents.list(), agent_id) if agent_id else [""]
        return [await self._read(Meter(subject, limit), payers) for limit in limits]

    async def _read(self, meter: Meter, payers: Iterable[str]) -> Meter:
        window = meter.window
        since = self._host.clock.time() - window.span
        used: Counter[int] = Counter()
        for payer in payers:
            for slot in await self._host.usage.since(since, window.width, payer):
                tokens = meter.limit.tokens
                used[slot.number] += slot.tokens if tokens else slot.cost_micro_usd
        for number in sorted(used):
            window.add_slot(number, used[number])
        return meter


def family(agents: Iterable[Agent], agent_id: str) -> list[str]:
    """Name an agent and all that come from it, whoever of them has spawned them."""
    found, children = [agent_id], [each for each in agents if each.parent]
    for known in found:
        found += [each.id for each in children if each.parent == known]
    return found


def _counted(pools: tuple[Pool, ...]) -> tuple[tuple[Room, int], ...]:
    """Give the pools that limit nothing: of them nothing is held."""
    return tuple([(PoolRoom(each), 0) for each in pools if each.limit >= UNLIMITED])


def _told(meter: Meter, now: float) -> Iterator[tuple[str, int]]:
    yield "limit", meter.limit.amount
    yield "used", meter.used(now)
    yield "held", meter.held


def _of_agents(
    agents: Mapping[str, list[Meter]], now: float
) -> Iterator[tuple[str, Mapping[str, str], float]]:
    def nearness(agent_id: str) -> float:
        meters = agents[agent_id]
        return max((m.used(now) + m.held) / m.limit.amount for m in meters)

    named = set(nlargest(MOST_TOLD, agents, key=nearness))
    sums: Counter[tuple[bool, str, str, str]] = Counter()
    for agent_id, meters in agents.items():
        agent = agent_id if agent_id in named else "other"
        for meter in meters:
            for kind, amount in _told(meter, now):
                sums[meter.limit.tokens, agent, meter.limit.name, kind] += amount
    for (tokens, agent, budget, kind), amount in sums.items():
        labels = {"agent": agent, "budget": budget, "kind": kind}
        if tokens:
            yield "agent_budget_tokens", labels, amount
        else:
            yield "agent_budget_usd", labels, amount / MILLION


def _amount(room: Room, spent: Spent | None) -> int:
    if spent is None:
        return 0
    if room.limit.tokens:
        return spent.usage.input_tokens + spent.usage.output_tokens
    return spent.cost_micro_usd


def _daemon_limits(host: Host) -> Iterator[Limit]:
    budget = host.settings(Budget)
    for name, dollars, span in (
        ("budget.max_hourly_usd", budget.max_hourly_usd, HOUR),
        ("budget.max_daily_usd", budget.max_daily_usd, DAY),
        ("budget.max_monthly_usd", budget.max_monthly_usd, MONTH),
    ):
        if dollars:
            yield Limit(name, _micro(dollars), span)


def _agent_limits(agent: AgentView, default_tokens: int) -> Iterator[Limit]:
    spending = SPENDING.of(agent.manifest)
    for name, dollars, span in (
        ("resources.max_cost_per_hour_usd", spending.max_cost_per_hour_usd, HOUR),
        ("resources.max_cost_per_day_usd", spending.max_cost_per_day_usd, DAY),
        ("resources.max_cost_per_month_usd", spending.max_cost_per_month_usd, MONTH),
    ):
        if dollars:
            yield Limit(name, _micro(dollars), span)
    tokens = spending.max_llm_tokens_per_hour or default_tokens
    if tokens:
        yield Limit("resources.max_llm_tokens_per_hour", tokens, HOUR, tokens=True)


def _micro(dollars: float) -> int:
    return round(Decimal(str(dollars)) * MILLION)


def _asked(model: ModelFacts, request: ChatRequest) -> int:
    """Give the longest answer that is asked for."""
    return request.max_tokens or min(model.max_output, ANSWER)


def _check_priced(target: Target, rooms: Iterable[Room]) -> None:
    """Refuse to spend money on a model whose price nobody knows.

    Raises:
        QuotaExceeded: Naming the limit and how to state a price.
    """
    slug, model = target.names
    money = _of_money(rooms)
    if money is None or not unpriced(target):
        return
    raise QuotaExceeded(
        f"{money.subject}: {money.limit.name} cannot be kept with {model!r}, whose "
        f"price nobody knows; state it under [providers.{slug}] models"
    )


def unpriced(target: Target) -> bool:
    """Tell whether nobody knows what a model costs; who is listed at 0 is free."""
    facts, model = target.provider.facts, target.model
    if facts.local or model.input_cost_per_1m or model.output_cost_per_1m:
        return False
    listed = (*facts.models, *facts.embeddings)
    return not any(row.id == model.id for row in listed)


def _of_money(rooms: Iterable[Room]) -> Room | None:
    """Give the first limit of money, if there is one."""
    return next((room for room in rooms if not room.limit.tokens), None)


def _dearest(model: ModelFacts, prompt: int, answer: int) -> int:
    """Price a call whose prompt is new, or written to a cache where that is dearer."""
    fresh = price(model, Usage(prompt, answer))
    if not writes_cost_more(model):
        return fresh
    written = Usage(prompt, answer, cache_write_tokens=prompt)
    return max(fresh, price(model, written))


def _affordable(model: ModelFacts, prompt: int, free: int) -> int:
    """Give the longest answer that the money left can pay; -1 for none at all."""
    bare = _dearest(model, prompt, 0)
    per_million = _dearest(model, prompt, MILLION) - bare
    if bare > free or per_million <= 0:
        return -1
    return max((free - bare - 1) * MILLION // per_million, -1)


def _refusal(room: Room, now: float) -> QuotaExceeded:
    limit = room.limit
    helps = "start it with a higher limit" if not limit.span else "wait, or raise it"
    refusal = (
        f"{room.subject}: {limit.name} leaves no room for this call: "
        f"{limit.told(room.used(now))} used and {limit.told(room.held)} held of "
        f"{limit.told(limit.amount)}; {helps}"
    )
    if isinstance(room, PoolRoom):
        return PoolSpent(refusal, room.pool)
    return QuotaExceeded(refusal)
