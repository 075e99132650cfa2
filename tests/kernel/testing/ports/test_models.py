"""The contract of models finds who breaks it; the shipped router is what is broken."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest
from agenthost import (
    Agent,
    Answered,
    ChatRequest,
    Choice,
    Delta,
    Embedded,
    Host,
    InvalidInput,
    Message,
    Models,
    ModelsBackend,
    NotFound,
    Observers,
    Payer,
    ProviderError,
    ProviderFault,
    Target,
)
from agenthost.testing import Daemons, ModelsContract
from agenthost.testing.ports.stage import Stage
from agenthost_models.models import RoutedModels

from .finding import names_in, names_of
from .staged import name_of, stage_finds

Stream = AsyncGenerator[Delta | Answered, None]


class EndsFirst(RoutedModels):
    async def stream(self, *given: Any) -> Stream:
        deltas = [delta async for delta in super().stream(*given)]
        for delta in reversed(deltas):
            yield delta


class AsksByItsOwnName(RoutedModels):
    async def _begin(self, candidate: Any, request: ChatRequest, payer: Any) -> Any:
        call = await super()._begin(candidate, request, payer)
        named = replace(call.hold.request, model=candidate.target.model.id)
        call.hold = replace(call.hold, request=named)
        return call


class ForgetsWhoPays(RoutedModels):
    def _spent(self, *given: Any) -> Any:
        return replace(super()._spent(*given), turn_id="")


class CountsNothing(RoutedModels):
    def _spent(self, *given: Any) -> Any:
        return replace(super()._spent(*given), cost_micro_usd=0)


class BooksForThePayer(RoutedModels):
    def _answered(self, call: Any, completion: Any) -> Answered:
        answered = super()._answered(call, completion)
        self._host.usage.book(answered.spent)
        return answered


class BooksNothing(RoutedModels):
    def _answered(self, call: Any, completion: Any) -> Answered:
        book, self._host.usage.book = self._host.usage.book, lambda _: None  # type: ignore[assignment,method-assign,return-value]
        try:
            return super()._answered(call, completion)
        finally:
            self._host.usage.book = book  # type: ignore[method-assign]


class HasNoStandIns(RoutedModels):
    def _spare(self, payer: Payer | None) -> Iterator[Target]:
        return iter(())


class TakesTheLastFirst(RoutedModels):
    def _spare(self, payer: Payer | None) -> Iterator[Target]:
        return reversed([*super()._spare(payer)])


class TellsOfNoAttempt(RoutedModels):
    async def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> Stream:
        apart = payer and replace(payer, failed=[])
        async for delta in super().stream(target, request, apart):
            yield delta


class AsksAll(RoutedModels):
    async def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> Stream:
        for spare in self._spare(payer):
            async for _ in super().stream(spare, request, None):
                pass
        async for delta in super().stream(target, request, payer):
            yield delta


class TellsOfTheLast(RoutedModels):
    async def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> Stream:
        for each in (target, *self._spare(payer)):
            try:
                async for delta in super().stream(each, request, None):
                    yield delta
                return
            except ProviderError as error:
                last = error
        raise last


class StandsInForAll(RoutedModels):
    def _spare(self, payer: Payer | None) -> Iterator[Target]:
        yield self.resolve("bob", "")


class SaysItAgain(RoutedModels):
    async def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> Stream:
        try:
            async for delta in super().stream(target, request, payer):
                yield delta
        except ProviderError:
            async for delta in super().stream(self.resolve("bob", ""), request, payer):
                yield delta


class BooksNothingBroken(RoutedModels):
    def _lost(self, call: Any, spent: Any) -> None:
        super()._lost(call, None)


class KeepsWhatIsHeld(RoutedModels):
    def _settle(self, call: Any, spent: Any) -> None:
        call.settled = True


class SpendsFreely(RoutedModels):
    def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> Stream:
        return super().stream(target, request, payer and replace(payer, pools=()))


class MindsOnePool(RoutedModels):
    def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> Stream:
        one = payer and replace(payer, pools=payer.pools[:1])
        return super().stream(target, request, one)


class HoldsNothing(RoutedModels):
    async def _begin(self, candidate: Any, request: ChatRequest, payer: Any) -> Any:
        call = await super()._begin(candidate, request, payer)
        self._budgets.settle(call.hold, None)
        call.hold = replace(call.hold, parts=tuple((r, 0) for r, _ in call.hold.parts))
        return call


class GivesToolsToAll(RoutedModels):
    async def _begin(self, candidate: Any, request: ChatRequest, payer: Any) -> Any:
        call = await super()._begin(candidate, request, payer)
        call.hold = replace(
            call.hold, request=replace(call.hold.request, tools=request.tools)
        )
        return call


class HidesProviders(RoutedModels):
    @property
    def providers(self) -> Any:
        return {s: spec for s, spec in super().providers.items() if s != "bob"}


class KnowsIdsAlone(RoutedModels):
    def find(self, name: str) -> Target | None:
        found = super().find(name)
        return found if found and found.model.id == name else None


class FindsSomething(RoutedModels):
    def find(self, name: str) -> Target | None:
        return super().find(name) or self.default()


class HasItsOwnDefault(RoutedModels):
    def default(self) -> Target:
        return self.resolve("bob", "")


class GoesToWhoListsIt(RoutedModels):
    def resolve(self, provider: str | None, model: str | None) -> Target:
        return self.find(model or "") or super().resolve(provider, model)


class ChoosesWhoListsIt(RoutedModels):
    async def choose(
        self, provider: str | None, model: str | None, own: str = ""
    ) -> Choice:
        found = self.find(model or "")
        return Choice(found) if found else await super().choose(provider, model, own)


class TakesAnyProvider(RoutedModels):
    def resolve(self, provider: str | None, model: str | None) -> Target:
        try:
            return super().resolve(provider, model)
        except InvalidInput:
            return self.default()


class ChoosesInSilence(RoutedModels):
    async def choose(self, *given: Any) -> Choice:
        return replace(await super().choose(*given), notices=())


class AlwaysWarns(RoutedModels):
    async def choose(self, *given: Any) -> Choice:
        return replace(await super().choose(*given), notices=("nobodys",))


class AsksWithoutAKey(RoutedModels):
    def check(self, target: Target) -> None:
        pass


class TakesAllForConfigured(RoutedModels):
    def auth_status(self, slug: str) -> str:
        return "configured"


class HidesKeys(RoutedModels):
    def keys_of(self, slug: str) -> Any:
        return ()


class TellsALotOfWords(RoutedModels):
    def gauges(self) -> Iterator[Any]:
        yield from super().gauges()
        yield "Model Breakers", {}, 1.0


class TellsItTwice(RoutedModels):
    def gauges(self) -> Iterator[Any]:
        yield from super().gauges()
        yield from super().gauges()


class LabelsAsItLikes(RoutedModels):
    def gauges(self) -> Iterator[Any]:
        for number, (name, labels, value) in enumerate(super().gauges()):
            yield name, {**labels, f"row_{number}": "x"}, value


class TellsNoNumber(RoutedModels):
    def gauges(self) -> Iterator[Any]:
        yield "model_breakers_open", {}, float("nan")


class TellsItsKeys(RoutedModels):
    def gauges(self) -> Iterator[Any]:
        for key in self.keys_of("cyd"):
            yield "model_keys", {"key": key.reveal()}, 1.0


class TellsOfAnyModel(RoutedModels):
    def gauges(self) -> Iterator[Any]:
        for _, _, model in self._uses._models:
            yield "model_calls", {"model": model}, 1.0


class CountsDown(RoutedModels):
    def gauges(self) -> Iterator[Any]:
        for name, labels, value in super().gauges():
            yield name, labels, -value


class NamesKeysByNothing(RoutedModels):
    def resting(self, slug: str) -> list[tuple[str, int, str, float]]:
        return [(m, key + 1, fault, s) for m, key, fault, s in super().resting(slug)]


class RemembersKeysThatAreGone(RoutedModels):
    def resting(self, slug: str) -> list[tuple[str, int, str, float]]:
        now = self._host.clock.monotonic()
        place = int(slug == "cyd")
        rests = self._breakers.resting(slug, now)
        return [(name[2], place, fault, seconds) for name, fault, seconds in rests]


C = ModelsContract()


class TurnsVectorsAround(RoutedModels):
    async def embed(self, *given: Any, **named: Any) -> Embedded:
        done = await super().embed(*given, **named)
        return replace(done, vectors=[*reversed(done.vectors)])


class BooksNoVectors(RoutedModels):
    async def embed(self, *given: Any, **named: Any) -> Embedded:
        book, self._host.usage.book = self._host.usage.book, lambda _: None  # type: ignore[assignment,method-assign,return-value]
        try:
            return await super().embed(*given, **named)
        finally:
            self._host.usage.book = book  # type: ignore[method-assign]


class HasStandInsForVectors(RoutedModels):
    async def embed(self, *given: Any, **named: Any) -> Embedded:
        try:
            return await super().embed(*given, **named)
        except ProviderError:
            return await super().embed(given[0], "bob-vectors", *given[2:], **named)


class TakesAnyVectors(RoutedModels):
    async def embed(self, *given: Any, **named: Any) -> Embedded:
        try:
            return await super().embed(*given, **named)
        except ProviderError as error:
            if error.fault is not ProviderFault.MALFORMED:
                raise
            return Embedded([[0.0] * 3])


class AsksForAQuote(RoutedModels):
    async def quote(self, agent: Agent, message: Message, session_id: str = "") -> Any:
        request = ChatRequest("ada-wire", "", (message,))
        async for _ in self.stream(self.resolve("ada", None), request):
            pass
        return await super().quote(agent, message, session_id)


class QuotesWithoutReading(RoutedModels):
    async def quote(self, agent: Agent, message: Message, session_id: str = "") -> Any:
        quoted = await super().quote(agent, message, session_id)
        return replace(quoted, input_tokens=1)


class QuotesAsIfAnew(RoutedModels):
    async def quote(self, agent: Agent, message: Message, session_id: str = "") -> Any:
        await super().quote(agent, message, session_id)
        return await super().quote(agent, message)


class QuotesAnybodysSession(RoutedModels):
    async def quote(self, agent: Agent, message: Message, session_id: str = "") -> Any:
        try:
            return await super().quote(agent, message, session_id)
        except NotFound:
            return await super().quote(agent, message)


class AsksUnbooked(RoutedModels):
    async def ask(self, *given: Any) -> Stream:
        async for delta in self.stream(*given):
            yield delta


class TakesEmptyTexts(RoutedModels):
    async def embed(self, texts: Any, *given: Any, **named: Any) -> Embedded:
        return await super().embed([t or "nothing" for t in texts], *given, **named)


BREACHES: tuple[tuple[type[RoutedModels], Any], ...] = (
    (TurnsVectorsAround, C.test_vectors_come_in_the_order_of_their_texts),
    (BooksNoVectors, C.test_each_request_for_vectors_is_booked),
    (HasStandInsForVectors, C.test_nothing_stands_in_for_vectors),
    (TakesAnyVectors, C.test_vectors_of_another_length_are_no_answer),
    (AsksForAQuote, C.test_a_quote_asks_nobody_and_books_nothing),
    (QuotesWithoutReading, C.test_a_quote_asks_nobody_and_books_nothing),
    (QuotesAsIfAnew, C.test_a_quote_reads_the_session_that_is_named),
    (QuotesAnybodysSession, C.test_a_quote_reads_the_session_that_is_named),
    (AsksUnbooked, C.test_who_asks_a_model_itself_pays_as_no_agent),
    (TakesEmptyTexts, C.test_vectors_need_room_key_texts_and_model),
    (EndsFirst, C.test_a_call_gives_words_and_then_its_end),
    (AsksByItsOwnName, C.test_a_call_gives_words_and_then_its_end),
    (ForgetsWhoPays, C.test_the_end_says_what_it_took_and_who_pays),
    (CountsNothing, C.test_the_end_says_what_it_took_and_who_pays),
    (BooksForThePayer, C.test_a_payer_books_what_was_answered),
    (BooksNothing, C.test_a_payer_books_what_was_answered),
    (HasNoStandIns, C.test_what_stands_in_is_tried_in_order),
    (TakesTheLastFirst, C.test_what_stands_in_is_tried_in_order),
    (TellsOfNoAttempt, C.test_what_stands_in_is_tried_in_order),
    (AsksAll, C.test_who_answers_has_no_stand_in),
    (TellsOfTheLast, C.test_the_first_ones_failure_is_told_when_all_fail),
    (StandsInForAll, C.test_nothing_stands_in_for_a_call_without_a_payer),
    (SaysItAgain, C.test_nothing_is_repeated_after_a_word),
    (BooksNothingBroken, C.test_nothing_is_repeated_after_a_word),
    (BooksNothingBroken, C.test_who_leaves_has_what_was_said_booked),
    (KeepsWhatIsHeld, C.test_who_leaves_has_what_was_said_booked),
    (SpendsFreely, C.test_a_budget_without_room_refuses_the_call),
    (MindsOnePool, C.test_a_budget_without_room_refuses_the_call),
    (MindsOnePool, C.test_a_budget_counts_what_was_spent),
    (KeepsWhatIsHeld, C.test_a_budget_counts_what_was_spent),
    (HoldsNothing, C.test_calls_at_once_spend_no_more_than_there_is),
    (GivesToolsToAll, C.test_tools_go_to_models_that_take_them),
    (HidesProviders, C.test_all_providers_are_there),
    (KnowsIdsAlone, C.test_a_model_is_found_by_what_it_is_listed_as),
    (FindsSomething, C.test_a_model_is_found_by_what_it_is_listed_as),
    (HasItsOwnDefault, C.test_the_default_is_what_the_configuration_names),
    (GoesToWhoListsIt, C.test_a_provider_that_is_named_is_never_left),
    (ChoosesWhoListsIt, C.test_a_provider_that_is_named_is_never_left),
    (TakesAnyProvider, C.test_a_provider_that_is_unknown_is_refused),
    (ChoosesInSilence, C.test_what_nobody_lists_is_passed_on_and_told),
    (AlwaysWarns, C.test_what_nobody_lists_is_passed_on_and_told),
    (AsksWithoutAKey, C.test_a_provider_without_its_key_is_not_asked),
    (TakesAllForConfigured, C.test_how_a_key_stands_is_told),
    (HidesKeys, C.test_how_a_key_stands_is_told),
    (TellsALotOfWords, C.test_what_a_monitor_is_told_can_be_read_by_one),
    (TellsItTwice, C.test_what_a_monitor_is_told_can_be_read_by_one),
    (LabelsAsItLikes, C.test_what_a_monitor_is_told_can_be_read_by_one),
    (TellsNoNumber, C.test_what_a_monitor_is_told_can_be_read_by_one),
    (TellsItsKeys, C.test_what_a_monitor_is_told_names_no_key_and_nothing_made_up),
    (TellsOfAnyModel, C.test_what_a_monitor_is_told_names_no_key_and_nothing_made_up),
    (CountsDown, C.test_what_a_monitor_is_told_as_a_total_only_grows),
    (NamesKeysByNothing, C.test_who_rests_is_told_by_the_place_of_its_key),
    (RemembersKeysThatAreGone, C.test_who_rests_is_told_by_the_place_of_its_key),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test"), BREACHES, ids=name_of)
async def test_a_broken_router_is_found(
    broken: type[RoutedModels], test: Any, daemons: Daemons, tmp_path: Path
) -> None:
    def open_broken(host: Host, observers: Observers) -> Models:
        return broken(host, SystemRandom(), observers)

    stage = Stage(daemons, ModelsBackend("broken", open_broken), tmp_path / "stage")
    await stage_finds(test, stage)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(ModelsContract)
