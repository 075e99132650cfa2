"""What every backend of the port MODELS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace

import pytest
from agenthost_chat.chat import TextChunk, ToolDefinition

from ...context import Context, Pool, Principal
from ...errors import (
    InvalidInput,
    NotFound,
    ProviderError,
    ProviderFault,
    QuotaExceeded,
)
from ...ports.models import Answered, Payer
from ...turns.turn import user_message
from ..scripted import USAGE
from .stage import Stage, StagedContract, known, soon
from .vendors import ASKED, COST, FALLBACKS, KEYED, SLUGS, Vendors

ROOMY = 1_000_000
AT_ONCE = 10
CANARY = "sk-cyd-6d1f0a9c"
GAUGE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
REFUSED = ProviderFault.BILLING
"""A fault that asking the same key again cannot mend."""


class ModelsContract(StagedContract):
    """A router of model calls keeps every promise of the port.

    A subclass overrides the fixture ``backend``. The tests run in daemons that it
    serves, over three scripted providers.

    Example:
        ::

            class TestRouted(ModelsContract):
                @pytest.fixture
                def backend(self) -> ModelsBackend:
                    return ModelsBackend("default", open_models)
    """

    async def test_a_call_gives_words_and_then_its_end(self, stage: Stage) -> None:
        """The end comes once, and last; the provider is asked by its own name."""
        vendors = await Vendors.open(stage)
        vendors.ada.says("one ", "two")
        *words, end = await vendors.heard("ada", await vendors.payer())
        assert all(isinstance(word, TextChunk) for word in words)
        assert "".join(getattr(word, "text", "") for word in words) == "one two"
        assert isinstance(end, Answered)
        assert end.completion.message.text == "one two"
        (request,) = vendors.ada.requests
        assert request.model == "ada-wire"
        assert (request.system, request.messages) == (ASKED.system, ASKED.messages)

    async def test_the_end_says_what_it_took_and_who_pays(self, stage: Stage) -> None:
        """By provider and model, in tokens and micro-dollars."""
        vendors = await Vendors.open(stage)
        payer = await vendors.payer()
        spent = (await vendors.ask("bob", payer)).spent
        assert (spent.provider, spent.model) == ("bob", "bob-model")
        assert (spent.usage, spent.cost_micro_usd) == (USAGE, COST)
        assert payer.agent is not None
        assert (spent.agent_id, spent.turn_id) == (payer.agent.id, "turn")
        assert spent.session_id == payer.agent.session_id

    async def test_who_asks_a_model_itself_pays_as_no_agent(self, stage: Stage) -> None:
        """The row names the principal, and is there before the end is told."""
        vendors = await Vendors.open(stage)
        caller = Principal("api_key", "ci", person="somebody")
        payer = Payer(None, "asked", context=Context(caller))
        asking = vendors.models.ask(vendors.target("bob"), ASKED, payer)
        async with aclosing(asking) as deltas:
            async for delta in deltas:
                if isinstance(delta, Answered):
                    spent, booked = delta.spent, await vendors.booked()
        assert (spent.agent_id, spent.session_id, spent.turn_id) == ("", "", "asked")
        assert (spent.principal, spent.person) == ("api_key:ci", "somebody")
        assert booked == 1

    async def test_a_payer_books_what_was_answered(self, stage: Stage) -> None:
        """The router books a call that nobody pays for; neither is booked twice."""
        vendors = await Vendors.open(stage)
        await vendors.ask("ada", await vendors.payer())
        await vendors.ask("ada")
        assert await vendors.booked() == 1

    async def test_what_stands_in_is_tried_in_order(self, stage: Stage) -> None:
        """The payer hears of each that failed; the row names who has answered."""
        vendors = await Vendors.open(stage)
        payer = await vendors.payer(manifest=FALLBACKS)
        vendors.ada.fails(REFUSED)
        vendors.bob.fails(REFUSED)
        answered = await vendors.ask("ada", payer)
        assert (answered.spent.provider, vendors.asked) == ("cyd", [1, 1, 1])
        assert vendors.cyd.requests[0].model == "cyd-wire"
        tried = [(each.target.names[0], each.outcome) for each in payer.failed]
        assert tried == [("ada", REFUSED.value), ("bob", REFUSED.value)]

    async def test_who_answers_has_no_stand_in(self, stage: Stage) -> None:
        """The others are not asked."""
        vendors = await Vendors.open(stage)
        payer = await vendors.payer(manifest=FALLBACKS)
        await vendors.ask("ada", payer)
        assert (vendors.asked, payer.failed) == ([1, 0, 0], [])

    async def test_the_first_ones_failure_is_told_when_all_fail(
        self, stage: Stage
    ) -> None:
        """It is what was asked for."""
        vendors = await Vendors.open(stage)
        payer = await vendors.payer(manifest=FALLBACKS)
        vendors.ada.fails(ProviderFault.BAD_REQUEST)
        vendors.bob.fails(REFUSED)
        vendors.cyd.fails(ProviderFault.AUTH)
        with pytest.raises(ProviderError) as told:
            await vendors.ask("ada", payer)
        assert told.value.fault is ProviderFault.BAD_REQUEST
        assert vendors.asked == [1, 1, 1]

    async def test_nothing_stands_in_for_a_call_without_a_payer(
        self, stage: Stage
    ) -> None:
        """It is a trial of what was named, and asked once."""
        vendors = await Vendors.open(stage)
        vendors.ada.fails(ProviderFault.SERVER)
        with pytest.raises(ProviderError):
            await vendors.ask("ada")
        assert vendors.asked == [1, 0, 0]

    async def test_nothing_is_repeated_after_a_word(self, stage: Stage) -> None:
        """What was said is booked, and the payer hears of it."""
        vendors = await Vendors.open(stage)
        payer = await vendors.payer(manifest=FALLBACKS)
        vendors.ada.fails(ProviderFault.SERVER, "half an answer")
        with pytest.raises(ProviderError):
            await vendors.ask("ada", payer)
        assert vendors.asked == [1, 0, 0]
        assert await vendors.booked() == 1
        (attempt,) = payer.failed
        assert attempt.spent is not None
        assert attempt.spent.usage.output_tokens > 0

    async def test_who_leaves_has_what_was_said_booked(self, stage: Stage) -> None:
        """And nothing stays held."""
        vendors = await Vendors.open(stage)
        pool = Pool(ROOMY)
        payer = await vendors.payer(pool)
        vendors.ada.says("half an answer", stage.pause())
        stream = vendors.models.stream(vendors.target("ada"), ASKED, payer)
        async with aclosing(stream) as deltas:
            assert isinstance(await soon(anext(deltas)), TextChunk)
            assert pool.held > 0
        assert await vendors.booked() == 1
        assert pool.held == 0
        assert pool.used > 0

    async def test_a_budget_without_room_refuses_the_call(self, stage: Stage) -> None:
        """Nobody is asked, nothing is booked."""
        vendors = await Vendors.open(stage)
        payer = await vendors.payer(Pool(ROOMY), Pool(0), manifest=FALLBACKS)
        with pytest.raises(QuotaExceeded):
            await vendors.ask("ada", payer)
        assert vendors.asked == [0, 0, 0]
        assert [pool.held for pool in payer.pools] == [0, 0]
        assert await vendors.booked() == 0

    async def test_a_budget_counts_what_was_spent(self, stage: Stage) -> None:
        """Of all its pools; what failed takes nothing, and nothing stays held."""
        vendors = await Vendors.open(stage)
        pools = Pool(ROOMY), Pool(ROOMY)
        payer = await vendors.payer(*pools, manifest=FALLBACKS)
        vendors.ada.fails(REFUSED)
        await vendors.ask("ada", payer)
        assert [(pool.used, pool.held) for pool in pools] == [(COST, 0)] * 2

    async def test_calls_at_once_spend_no_more_than_there_is(
        self, stage: Stage
    ) -> None:
        """Room is held for the dearest before a call, so some wait or are refused."""
        vendors = await Vendors.open(stage)
        pool = Pool(2_000)
        payer = await vendors.payer(pool)
        pause = stage.pause()
        for _ in range(AT_ONCE):
            vendors.ada.says(pause, "fine")
        calls = [asyncio.create_task(vendors.ask("ada", payer)) for _ in range(AT_ONCE)]
        await soon(pause.reached.wait())
        assert pool.held <= pool.limit
        assert 0 < len(vendors.ada.requests) < AT_ONCE
        pause.go_on()
        ends = await soon(asyncio.gather(*calls, return_exceptions=True))
        refused = sum(isinstance(end, QuotaExceeded) for end in ends)
        assert refused < AT_ONCE
        assert pool.used == COST * (AT_ONCE - refused) <= pool.limit

    async def test_tools_go_to_models_that_take_them(self, stage: Stage) -> None:
        """Another is asked without."""
        vendors = await Vendors.open(stage)
        request = replace(ASKED, tools=(ToolDefinition("look", "To look.", {}),))
        payer = await vendors.payer()
        for name in ("ada-model", "ada-other"):
            stream = vendors.models.stream(
                vendors.models.resolve("ada", name), request, payer
            )
            async with aclosing(stream) as deltas:
                assert [delta async for delta in deltas]
        assert [len(each.tools) for each in vendors.ada.requests] == [1, 0]

    async def test_all_providers_are_there(self, stage: Stage) -> None:
        """By their slugs, with their models."""
        vendors = await Vendors.open(stage)
        providers = vendors.models.providers
        assert set(SLUGS) <= set(providers)
        ids = [model.id for model in providers["bob"].facts.models]
        assert ids == ["bob-model", "bob-other"]

    async def test_a_model_is_found_by_what_it_is_listed_as(self, stage: Stage) -> None:
        """Its id, an alias, or its provider before it; None when nobody lists it."""
        vendors = await Vendors.open(stage)
        names = "bob-other", "bob-short", "bob/bob-other"
        targets = [vendors.models.find(name) for name in names]
        assert [target and target.names for target in targets] == [
            ("bob", "bob-other")
        ] * 3
        assert vendors.models.find("nobodys") is None

    async def test_the_default_is_what_the_configuration_names(
        self, stage: Stage
    ) -> None:
        """By every way that leads to it."""
        vendors = await Vendors.open(stage)
        models = vendors.models
        asked = (None, None), (None, "default"), ("default", "")
        targets = [models.default(), *(models.resolve(*names) for names in asked)]
        assert {target.names for target in targets} == {("ada", "ada-model")}
        assert models.names_of_default() == ("ada", "ada-model")
        assert models.check_default() == []

    async def test_a_provider_that_is_named_is_never_left(self, stage: Stage) -> None:
        """Whoever else has the model, and also when its own list has not."""
        vendors = await Vendors.open(stage)
        for name in ("ada-model", "nobodys", "bob-other", "ada/ada-model"):
            assert vendors.models.resolve("bob", name).names[0] == "bob"
            choice = await soon(vendors.models.choose("bob", name, "ada"))
            assert choice.target.names[0] == "bob"

    async def test_a_provider_that_is_unknown_is_refused(self, stage: Stage) -> None:
        """Naming it."""
        vendors = await Vendors.open(stage)
        with pytest.raises(InvalidInput, match="nobody"):
            vendors.models.resolve("nobody", "ada-model")
        with pytest.raises(InvalidInput, match="nobody"):
            await soon(vendors.models.choose("nobody", "ada-model", "ada"))

    async def test_what_nobody_lists_is_passed_on_and_told(self, stage: Stage) -> None:
        """Who chose it reads so; what is listed is chosen without a word."""
        vendors = await Vendors.open(stage)
        listed = await soon(vendors.models.choose("bob", "bob-other"))
        passed = await soon(vendors.models.choose("bob", "nobodys"))
        assert (listed.target.names, listed.notices) == (("bob", "bob-other"), ())
        assert passed.target.model.upstream_id == "nobodys"
        assert any("nobodys" in notice for notice in passed.notices)

    async def test_a_provider_without_its_key_is_not_asked(self, stage: Stage) -> None:
        """Its fault is AUTH; for a payer, what stands in answers."""
        vendors = await Vendors.open(stage, key="")
        with pytest.raises(ProviderError) as told:
            vendors.models.check(vendors.target(KEYED))
        assert told.value.fault is ProviderFault.AUTH
        with pytest.raises(ProviderError) as told:
            await vendors.ask(KEYED)
        assert told.value.fault is ProviderFault.AUTH
        answered = await vendors.ask(KEYED, await vendors.payer(manifest=FALLBACKS))
        assert (answered.spent.provider, vendors.asked) == ("bob", [0, 1, 0])

    async def test_how_a_key_stands_is_told(self, stage: Stage) -> None:
        """A provider that needs none can be called, and so can one that has its own."""
        for key, stands in (("", "missing"), ("sk-cyd", "configured")):
            vendors = await Vendors.open(stage, key=key)
            assert vendors.models.auth_status(KEYED) == stands
            assert vendors.models.auth_status("ada") == "no_key_needed"
            keys = [each.reveal() for each in vendors.models.keys_of(KEYED)]
            assert keys == ([key] if key else [])
            assert list(vendors.models.keys_of("ada")) == []
        vendors.models.check(vendors.target(KEYED))
        vendors.models.check(vendors.target("ada"))
        assert (await vendors.ask(KEYED)).spent.provider == KEYED

    async def test_what_a_monitor_is_told_can_be_read_by_one(
        self, stage: Stage
    ) -> None:
        """At any time: plain names with the same labels, each row once, as a number."""
        vendors = await Vendors.open(stage)
        at_first, payer = _told(vendors), await vendors.payer(manifest=FALLBACKS)
        for told in (at_first, await _lived_through(vendors, payer)):
            labels: dict[str, set[tuple[str, ...]]] = {}
            rows = [(name, tuple(sorted(named.items()))) for name, named, _ in told]
            for name, named in rows:
                keys = tuple(key for key, _ in named)
                labels.setdefault(name, set()).add(keys)
                assert all(GAUGE.fullmatch(each) for each in (name, *keys))
                assert all(isinstance(value, str) for _, value in named)
            assert all(len(each) == 1 for each in labels.values())
            assert len(rows) == len(set(rows))
            assert all(math.isfinite(number) for _, _, number in told)

    async def test_what_a_monitor_is_told_names_no_key_and_nothing_made_up(
        self, stage: Stage
    ) -> None:
        """A key is told by its place at most, a model that nobody lists not at all."""
        vendors = await Vendors.open(stage, key=CANARY)
        payer = await vendors.payer(manifest=FALLBACKS)
        told = repr(await _lived_through(vendors, payer))
        assert CANARY not in told
        assert "nobodys" not in told

    async def test_what_a_monitor_is_told_as_a_total_only_grows(
        self, stage: Stage
    ) -> None:
        """Whatever it counts."""
        vendors = await Vendors.open(stage, key=CANARY)
        payer = await vendors.payer(manifest=FALLBACKS)
        before = _totals(await _lived_through(vendors, payer))
        after = _totals(await _lived_through(vendors, payer))
        assert all(after[row] >= number for row, number in before.items())

    async def test_who_rests_is_told_by_the_place_of_its_key(
        self, stage: Stage
    ) -> None:
        """With a fault and the seconds to go; a key that is gone rests in vain."""
        vendors = await Vendors.open(stage, key=CANARY)
        vendors.cyd.fails(ProviderFault.AUTH)
        vendors.ada.fails(ProviderFault.AUTH)
        for slug, key in ((KEYED, 1), ("ada", 0)):
            with pytest.raises(ProviderError):
                await vendors.ask(slug)
            for model, place, fault, seconds in vendors.models.resting(slug):
                assert model in {f"{slug}-model", f"{slug}-wire"}
                assert (place, fault) == (key, "auth")
                assert seconds > 0
        assert CANARY not in repr(vendors.models.resting(KEYED))
        assert list(vendors.models.resting("bob")) == []
        vault = stage.running.daemon.vault
        await vault.change({f"provider/{KEYED}": "sk-another"})
        assert list(vendors.models.resting(KEYED)) == []

    async def test_a_quote_asks_nobody_and_books_nothing(self, stage: Stage) -> None:
        """It names the agent's model, and is the more the more is said."""
        vendors = await Vendors.open(stage)
        agent = known(await vendors.daemon.agent("payer"))
        short, long = [
            await soon(vendors.models.quote(agent, user_message(text)))
            for text in ("hi", "hi " * 500)
        ]
        assert short.model == "ada/ada-model"
        assert long.input_tokens > short.input_tokens + 500
        assert long.most_micro_usd >= short.most_micro_usd >= short.likely_micro_usd
        assert (vendors.asked, await vendors.booked()) == ([0, 0, 0], 0)

    async def test_a_quote_reads_the_session_that_is_named(self, stage: Stage) -> None:
        """A new one by default; another agent's is not found."""
        vendors = await Vendors.open(stage)
        running = await vendors.daemon.agent("payer")
        other = await vendors.daemon.agent("other")
        await running.ask("a long story " * 100)
        agent, said = known(running), user_message("hi")
        new = await soon(vendors.models.quote(agent, said))
        own = await soon(vendors.models.quote(agent, said, agent.session_id))
        assert own.input_tokens > new.input_tokens + 300
        with pytest.raises(NotFound):
            await soon(vendors.models.quote(agent, said, known(other).session_id))

    async def test_vectors_come_in_the_order_of_their_texts(self, stage: Stage) -> None:
        """In requests no longer than the model takes; what they took is told."""
        vendors = await Vendors.open(stage)
        texts = ["a", "bb", "ccc", "dddd", "eeeee"]
        done = await soon(vendors.models.embed(texts, "bob-vectors"))
        assert [list(vector) for vector in done.vectors] == [
            [float(len(text)), 0.0] for text in texts
        ]
        assert max(len(batch) for batch, _ in vendors.letters.calls) <= 2
        assert done.names == ("bob", "bob-vectors")
        assert done.usage.input_tokens == 30

    async def test_each_request_for_vectors_is_booked(self, stage: Stage) -> None:
        """By the router, with a payer or without; budgets count it."""
        vendors = await Vendors.open(stage)
        pool = Pool(ROOMY)
        payer = await vendors.payer(pool)
        await soon(vendors.models.embed(["a", "bb", "ccc"], "ada-vectors", payer))
        assert (await vendors.booked(), pool.used, pool.held) == (2, 20, 0)
        await soon(vendors.models.embed(["a"], "ada-vectors"))
        assert await vendors.booked() == 3

    async def test_nothing_stands_in_for_vectors(self, stage: Stage) -> None:
        """Those of another model could not be compared."""
        vendors = await Vendors.open(stage)
        payer = await vendors.payer(manifest=FALLBACKS)
        vendors.letters.refused = {""}
        with pytest.raises(ProviderError) as told:
            await soon(vendors.models.embed(["a"], "ada-vectors", payer))
        assert told.value.fault is REFUSED
        assert len(vendors.letters.calls) == 1
        assert await vendors.booked() == 0

    async def test_vectors_of_another_length_are_no_answer(self, stage: Stage) -> None:
        """The model's row says how long they are."""
        vendors = await Vendors.open(stage)
        vendors.letters.length = 3
        with pytest.raises(ProviderError) as told:
            await soon(vendors.models.embed(["a"], "ada-vectors"))
        assert told.value.fault is ProviderFault.MALFORMED

    async def test_vectors_need_room_key_texts_and_model(self, stage: Stage) -> None:
        """Without one of them nobody is asked."""
        vendors = await Vendors.open(stage, key="")
        payer = await vendors.payer(Pool(0))
        embed = vendors.models.embed
        with pytest.raises(QuotaExceeded):
            await soon(embed(["a"], "ada-vectors", payer))
        with pytest.raises(ProviderError) as told:
            await soon(embed(["a"], f"{KEYED}-vectors"))
        assert told.value.fault is ProviderFault.AUTH
        for texts, model in (([], "ada-vectors"), ([""], "ada-vectors"), (["a"], "x")):
            with pytest.raises(InvalidInput):
                await soon(embed(texts, model))
        assert vendors.letters.calls == []


Row = tuple[str, Mapping[str, str], float]


def _told(vendors: Vendors) -> list[Row]:
    return [(name, dict(of), number) for name, of, number in vendors.models.gauges()]


async def _lived_through(vendors: Vendors, payer: Payer) -> list[Row]:
    """What is told after answers and failures, of listed models and of others."""
    vendors.cyd.fails(ProviderFault.RATE_LIMITED)
    await vendors.ask("ada", payer)
    with pytest.raises(ProviderError):
        await vendors.ask(KEYED)
    target = vendors.models.resolve("bob", "nobodys")
    vendors.bob.fails(REFUSED)
    with pytest.raises(ProviderError):
        async with aclosing(vendors.models.stream(target, ASKED)) as deltas:
            assert not [delta async for delta in deltas]
    return _told(vendors)


def _totals(told: list[Row]) -> dict[tuple[str, str], float]:
    return {
        (name, repr(sorted(named.items()))): number
        for name, named, number in told
        if name.endswith("_total")
    }
