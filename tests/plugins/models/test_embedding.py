"""Texts become vectors: which model, in which batches, for how much."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    Embedded,
    EmbedderSpec,
    EmbeddingCall,
    InvalidInput,
    ModelFacts,
    Pool,
    ProviderError,
    ProviderFacts,
    ProviderFault,
    ProviderSpec,
    QuotaExceeded,
    Usage,
)
from agenthost.testing import Daemons
from agenthost.testing.simulators import OpenAIChatWire, ProviderSimulator
from agenthost_models.embedding import MOST_TEXTS

from ...kernel.plugins.entries import module
from .bench import Bench
from .upstream import Upstream

ROW = ModelFacts(
    "a-vectors", "a", "vectors-1", "Vectors", dimensions=2, batch=3, max_output=1
)
ROW = replace(ROW, input_cost_per_1m=1.0)


class Embedder:
    """Counts letters; what it does otherwise, the test says."""

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.calls: list[EmbeddingCall] = []
        self.usage = Usage(7)
        self.numbers: Callable[[str], Sequence[float]] = lambda text: (
            float(len(text)),
            1.0,
        )

    async def embed(self, call: EmbeddingCall) -> Embedded:
        self.calls.append(call)
        scene = self.script.pop(0) if self.script else None
        if isinstance(scene, ProviderFault):
            raise ProviderError(scene, "a", "scripted")
        if isinstance(scene, asyncio.Event):
            await scene.wait()
        if isinstance(scene, Embedded):
            return scene
        vectors = [array("d", self.numbers(text)) for text in call.texts]
        return Embedded(vectors, self.usage)


def bench_of(
    embedder: Embedder, *rows: ModelFacts, config: Any = None, **more: Any
) -> Bench:
    upstream = Upstream("a", embeddings=rows or (ROW,), **more)
    bench = Bench([upstream], config)
    bench.offers.append(EmbedderSpec("a", embedder.embed))
    bench.restart()
    return bench


def letters(embedded: Embedded) -> list[float]:
    return [vector[0] for vector in embedded.vectors]


async def test_vectors_come_in_the_order_of_their_texts() -> None:
    embedder = Embedder()
    bench = bench_of(embedder)
    texts = ["x" * number for number in range(1, 9)]
    done = await bench.models.embed(texts, "a-vectors")
    assert letters(done) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [len(call.texts) for call in embedder.calls] == [3, 3, 2]
    assert done.names == ("a", "a-vectors")
    assert done.usage.input_tokens == 21


async def test_each_request_is_booked_once() -> None:
    bench = bench_of(Embedder())
    await bench.models.embed(["one", "two", "three", "four"], "a-vectors")
    rows = [(row.provider, row.model, row.cost_micro_usd) for row in bench.ledger.rows]
    assert rows == [("a", "a-vectors", 7)] * 2


async def test_what_is_not_counted_is_estimated() -> None:
    embedder = Embedder()
    embedder.usage = Usage()
    bench = bench_of(embedder)
    await bench.models.embed(["word " * 100], "a-vectors")
    assert bench.ledger.rows[0].usage.input_tokens >= 100


@pytest.mark.parametrize("size", [100_000, 300_000])
async def test_long_texts_go_in_requests_of_their_own(size: int) -> None:
    embedder = Embedder()
    bench = bench_of(embedder)
    done = await bench.models.embed(["y" * size] * 3, "a-vectors")
    most = max(262_144 // size, 1)
    assert max(len(call.texts) for call in embedder.calls) == most
    assert letters(done) == [size] * 3


async def test_many_numbers_are_read_in_parts() -> None:
    wide = replace(ROW, dimensions=40_000, batch=100)
    embedder = Embedder()
    embedder.numbers = lambda _: [0.5] * 40_000
    await bench_of(embedder, wide).models.embed(["a"] * 5, "a-vectors")
    assert [len(call.texts) for call in embedder.calls] == [2, 2, 1]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([], "texts"),
        ("a string", "texts"),
        (["a"] * (MOST_TEXTS + 1), "1 to 1,024"),
        (["fine", " \n"], r"texts\[1\]"),
        (["é" * 5_000_000], "8,388,608 bytes"),
    ],
)
async def test_texts_out_of_bounds_are_refused(texts: Any, told: str) -> None:
    embedder = Embedder()
    with pytest.raises(InvalidInput, match=told):
        await bench_of(embedder).models.embed(texts, "a-vectors")
    assert embedder.calls == []


@pytest.mark.parametrize(
    "answer",
    [
        Embedded([]),
        Embedded([[1.0, 2.0]]),
        Embedded([[1.0, 2.0], [1.0]]),
        Embedded([[1.0], [1.0]]),
        Embedded([[], []]),
        Embedded([[1.0, float("nan")], [1.0, 2.0]]),
        Embedded([[1.0, float("inf")], [1.0, 2.0]]),
    ],
)
async def test_what_does_not_fit_is_malformed(answer: Embedded) -> None:
    bench = bench_of(Embedder(*[answer] * 9))
    with pytest.raises(ProviderError) as told:
        await bench.passing(bench.models.embed(["a", "b"], "a-vectors"))
    assert told.value.fault is ProviderFault.MALFORMED


async def test_batches_of_several_lengths_are_malformed() -> None:
    free = replace(ROW, dimensions=0, batch=1)
    embedder = Embedder()
    embedder.numbers = lambda text: [1.0] * len(text)
    bench = bench_of(embedder, free)
    assert len((await bench.models.embed(["aa", "bb"], "a-vectors")).vectors) == 2
    with pytest.raises(ProviderError, match="several lengths"):
        await bench.models.embed(["aa", "b"], "a-vectors")


async def test_what_passes_is_tried_again_and_what_does_not_is_told() -> None:
    embedder = Embedder(ProviderFault.OVERLOADED, ProviderFault.RATE_LIMITED)
    bench = bench_of(embedder)
    done = await bench.passing(bench.models.embed(["abc"], "a-vectors"))
    assert (letters(done), len(embedder.calls)) == ([3], 3)
    embedder.script = [ProviderFault.BAD_REQUEST]
    with pytest.raises(ProviderError):
        await bench.passing(bench.models.embed(["abc"], "a-vectors"))
    assert len(embedder.calls) == 4


async def test_another_key_is_tried_where_one_is_refused() -> None:
    embedder = Embedder(ProviderFault.AUTH)
    bench = bench_of(embedder)
    bench.environ |= {"A_KEY": "one", "A_KEY_2": "two"}
    await bench.passing(bench.models.embed(["abc"], "a-vectors"))
    keys = [call.endpoint.key for call in embedder.calls]
    assert [key.reveal() for key in keys if key] == ["one", "two"]


async def test_a_provider_without_its_key_is_not_asked() -> None:
    embedder = Embedder()
    bench = bench_of(embedder, key_required=True)
    with pytest.raises(ProviderError, match="no API key") as told:
        await bench.models.embed(["abc"], "a-vectors")
    assert (told.value.fault, embedder.calls) == (ProviderFault.AUTH, [])


async def test_a_provider_that_failed_often_rests() -> None:
    embedder = Embedder(*[ProviderFault.SERVER] * 9)
    bench = bench_of(embedder)
    for _ in range(2):
        with pytest.raises(ProviderError):
            await bench.passing(bench.models.embed(["abc"], "a-vectors"))
        if bench.models.resting("a"):
            break
    assert [name for name, _, _, _ in bench.models.resting("a")] == ["vectors-1"]


async def test_budgets_hold_and_give_back() -> None:
    embedder = Embedder()
    bench = bench_of(embedder)
    pool = Pool(1_000)
    payer = bench.payer(pools=(pool,))
    await bench.models.embed(["abc"], "a-vectors", payer)
    assert (pool.used, pool.held) == (7, 0)
    with pytest.raises(QuotaExceeded):
        await bench.models.embed(["z" * 5_000], "a-vectors", payer)
    assert (pool.used, pool.held, len(embedder.calls)) == (7, 0, 1)
    assert bench.ledger.rows[0].agent_id == "anna"


async def test_who_leaves_has_the_request_booked() -> None:
    never = asyncio.Event()
    bench = bench_of(Embedder(never))
    pool = Pool(1_000)
    payer = bench.payer(pools=(pool,))
    task = asyncio.create_task(bench.models.embed(["abc"], "a-vectors", payer))
    for _ in range(20):
        await asyncio.sleep(0)
    assert pool.held > 0
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), pool.held, len(bench.ledger.rows)) == (True, 0, 1)


@pytest.mark.parametrize(
    "named", ["a-vectors", "A-Vectors", "vectors-1", "a/a-vectors", "a/vectors-1"]
)
async def test_a_model_has_its_names(named: str) -> None:
    done = await bench_of(Embedder()).models.embed(["abc"], named)
    assert done.names == ("a", "a-vectors")


async def test_a_name_that_nobody_lists_goes_to_its_provider() -> None:
    embedder = Embedder()
    bench = bench_of(embedder)
    assert (await bench.models.embed(["abc"], "a/new-1")).names == ("a", "new-1")
    row = embedder.calls[0].endpoint.model
    assert row is not None
    assert row.upstream_id == "new-1"
    for unknown in ("a-vector", "b/new-1", "/", "a/"):
        with pytest.raises(InvalidInput, match="model"):
            await bench.models.embed(["abc"], unknown)


@pytest.mark.setting("embeddings.model")
async def test_who_names_none_gets_what_is_configured() -> None:
    other = replace(ROW, id="b-vectors", upstream_id="b-1")
    for named, found in ((None, "a-vectors"), ("b-vectors", "b-vectors")):
        config = {"embeddings": {"model": named}, "default_model": {"provider": "a"}}
        bench = bench_of(Embedder(), ROW, other, config=config)
        assert (await bench.models.embed(["abc"])).names == ("a", found)


async def test_the_provider_of_the_default_model_goes_before_one_with_a_key() -> None:
    of_b = replace(ROW, id="b-vectors", provider="b")
    both = [Upstream("b", embeddings=(of_b,)), Upstream("a", embeddings=(ROW,))]
    for default, found in (("a", "a-vectors"), (None, "b-vectors")):
        bench = Bench(both, {"default_model": {"provider": default}})
        bench.environ["B_KEY"] = "sk-b"
        bench.offers += [EmbedderSpec(name, Embedder().embed) for name in "ab"]
        bench.restart()
        assert (await bench.models.embed(["abc"])).names[1] == found


@pytest.mark.setting(
    "providers.<name>.embeddings",
    "providers.<name>.embeddings[].id",
    "providers.<name>.embeddings[].upstream_id",
    "providers.<name>.embeddings[].dimensions",
    "providers.<name>.embeddings[].max_input",
    "providers.<name>.embeddings[].batch",
    "providers.<name>.embeddings[].input_cost_per_1m",
)
async def test_a_provider_of_the_configuration_lists_embeddings(
    daemons: Daemons,
) -> None:
    entry = (
        "{ id = 'mine', upstream_id = 'wire-1', dimensions = 3, max_input = 9, "
        "batch = 2, input_cost_per_1m = 5.0 }"
    )
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        config = (
            f"[providers.house]\nbase_url = '{upstream.base_url}'\n"
            f"embeddings = [{entry}, 'plain']\n"
            "[providers.openai]\n"
            "embeddings = [{ id = 'text-embedding-3-small', batch = 7 }]\n"
        )
        running = await daemons.start(config=config)
        providers = running.daemon.models.providers
        mine, plain = providers["house"].facts.embeddings
        told = (mine.upstream_id, mine.dimensions, mine.max_input, mine.batch)
        assert told == ("wire-1", 3, 9, 2)
        assert mine.input_cost_per_1m == 5.0
        assert (plain.upstream_id, plain.dimensions, plain.batch) == ("plain", 0, 16)
        (small,) = providers["openai"].facts.embeddings
        assert (small.dimensions, small.batch) == (1536, 7)
        with pytest.raises(ProviderError) as refused:
            await running.daemon.models.embed(["abc"], "mine")
    # It was asked there, and speaks of chats alone.
    assert refused.value.fault is ProviderFault.MODEL_NOT_FOUND


async def test_a_fresh_home_has_vectors_without_a_key(daemons: Daemons) -> None:
    models = (await daemons.start()).daemon.models
    texts = ["the red house", "a red house", "tax law in 1871"]
    done = await models.embed(texts)
    near, far = (
        sum(map(float.__mul__, done.vectors[0], done.vectors[other]))
        for other in (1, 2)
    )
    assert done.names == ("offline", "offline-hash")
    assert near > 0.5 > far


async def test_what_register_embedder_offers_serves_its_dialect(
    daemons: Daemons,
) -> None:
    embedder = Embedder()
    row = replace(ROW, provider="acme")
    facts = ProviderFacts("acme", "Acme", "", key_required=False, embeddings=(row,))
    plugin = module(
        register_provider=lambda: [ProviderSpec(facts, Upstream("acme-wire"))],
        register_embedder=lambda: [EmbedderSpec("acme-wire", embedder.embed)],
    )
    running = await daemons.start(plugins=[plugin])
    done = await running.daemon.models.embed(["ab", "abc"], "acme/a-vectors")
    assert letters(done) == [2, 3]
    with pytest.raises(InvalidInput, match="no provider lists"):
        await running.daemon.models.embed(["ab"], "anthropic/any")
