"""What a real relay here does not show: several relays, refusals, forged letters."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from agenthost import Unauthenticated, Unavailable
from agenthost_channels.contract import Fate, Outbound, Place
from agenthost_channels.nostr import adapter as module
from agenthost_channels.nostr import relay as relays
from agenthost_channels.nostr.adapter import Nostr, Settings
from agenthost_channels.testing import FakeLine
from pydantic import ValidationError

keys = pytest.importorskip("agenthost_channels.nostr.keys")
letters = pytest.importorskip("agenthost_channels.nostr.letters")

from .scripted import ScriptedRelay  # noqa: E402

SECRET = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"
# The example of NIP-19 of the same key.
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
NPUB = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"
PUBKEY = "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e"

US = keys.Identity.read(SECRET)
ADA = keys.Identity.new()
EVE = keys.Identity.new()


def now() -> int:
    return int(FakeLine(None).clock.now().timestamp())


def letter(text: str, at: int | None = None, of: Any = ADA) -> Any:
    """Write to us; the wrap's time is shown as that of the letter, for the order."""
    return letters.written(of, US.pubkey, text, at or now()).event.as_json()


@asynccontextmanager
async def connected(
    *served: ScriptedRelay, **more: object
) -> AsyncIterator[tuple[Nostr, FakeLine]]:
    urls = [each.url for each in served]
    settings = Settings.model_validate({"relays": urls, **more})
    line = FakeLine(settings, {"private_key": SECRET})
    adapter = Nostr(line)
    run = asyncio.create_task(adapter.run())
    try:
        await line.until(lambda: bool(line.connections))
        yield adapter, line
    finally:
        run.cancel()
        await asyncio.wait([run])
        await line.aclose()


def message(text: str = "hello", peer: str | None = None) -> Outbound:
    return Outbound("k", Place("default", peer or keys.npub(ADA.pubkey)), text)


def test_the_keys_are_those_of_the_specification() -> None:
    sample = "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"
    hexadecimal = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d"
    assert keys.npub(hexadecimal) == sample
    assert keys.pubkey_of(sample) == hexadecimal
    assert keys.npub(PUBKEY) == NPUB
    assert keys.Identity.read(NSEC).pubkey == US.pubkey == PUBKEY


@pytest.mark.parametrize("text", ["", "nsec1canary", NPUB, SECRET[:-1], "0" * 64])
async def test_what_is_no_key_is_told_and_not_shown(text: str) -> None:
    line = FakeLine(Settings(relays=["ws://127.0.0.1:1"]), {"private_key": text})
    with pytest.raises(Unauthenticated, match="NOSTR_PRIVATE_KEY") as told:
        await Nostr(line).run()
    assert not text or text not in str(told.value)


@pytest.mark.parametrize("url", ["ws://relay.example", "https://relay.example", "x"])
def test_a_relay_is_named_by_an_encrypted_address(url: str) -> None:
    with pytest.raises(ValidationError, match="wss://"):
        Settings(relays=[url])


async def test_we_say_where_we_are_written_to() -> None:
    async with ScriptedRelay() as one, connected(one) as (adapter, _):
        greeting = adapter._mailboxes(US).as_json()
    assert greeting["kind"] == 10050
    assert greeting["tags"] == [["relay", one.url]]
    assert keys.Event.read(greeting).is_signed()


async def test_a_letter_of_two_relays_is_heard_once() -> None:
    one, two = ScriptedRelay(), ScriptedRelay()
    async with one, two, connected(one, two) as (adapter, line):
        await line.until(lambda: len(adapter._heard_until) == 2)
        same = letter("once")
        for each in (one, two):
            await each.say("EVENT", "live", same)
            await each.say("EVENT", "live", same)
            await each.say("EVENT", "live", letter(each.url))
        heard = await line.hear(3)
    assert sorted(each.text for each in heard) == sorted(["once", one.url, two.url])


async def test_one_relay_that_takes_it_is_enough() -> None:
    async with ScriptedRelay() as one, ScriptedRelay() as two:
        one.refusing = "blocked: not here"
        async with connected(one, two) as (adapter, line):
            await line.until(lambda: all(each.is_open for each in adapter._relays))
            sent = await adapter.send(message())
            await two.until(1)
    assert sent.fate is Fate.DELIVERED
    (event,) = two.taken
    assert event["kind"] == 1059
    assert event["pubkey"] != US.pubkey
    assert event["tags"] == [["p", ADA.pubkey]]
    opened = letters.opened(keys.Event.read(event), ADA)
    assert (opened.text, opened.pubkey) == ("hello", US.pubkey)
    assert opened.id.partition("/")[0] == sent.message_id


async def test_a_relay_that_goes_away_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    one, two = ScriptedRelay(), ScriptedRelay()
    async with one, two, connected(one, two) as (adapter, line):
        await line.until(lambda: len(adapter._heard_until) == 2)
        await one.stop()
        await two.say("EVENT", "live", letter("still here"))
        (heard,) = await line.hear(1)
        sent = await adapter.send(message())
    assert heard.text == "still here"
    assert sent.fate is Fate.DELIVERED
    assert line.connections == 1


async def test_nobody_there_ends_it() -> None:
    line = FakeLine(
        Settings(relays=["ws://127.0.0.1:1", "ws://localhost:1"]),
        {"private_key": SECRET},
    )
    with pytest.raises(Unavailable):
        await Nostr(line).run()
    assert line.connections == 0


@pytest.mark.parametrize(
    ("reason", "final"),
    [("blocked: no", True), ("pow: 30", True), ("rate-limited: slow", False)],
)
async def test_a_refusal_is_final_where_it_would_be_repeated(
    reason: str, final: bool
) -> None:
    async with ScriptedRelay() as one, connected(one) as (adapter, _):
        one.refusing = reason
        sent = await adapter.send(message())
        one.refusing = "duplicate: have it"
        again = await adapter.send(message())
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, final)
    assert reason in sent.reason
    assert again.fate is Fate.DELIVERED


async def test_what_is_not_answered_has_an_unknown_fate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relays, "ANSWER_SECONDS", 0.1)
    async with ScriptedRelay() as one, connected(one) as (adapter, _):
        one.silent = True
        silent = await adapter.send(message())
        one.hanging_up = True
        monkeypatch.setattr(relays, "ANSWER_SECONDS", 20)
        gone = await adapter.send(message())
    assert silent.fate is gone.fate is Fate.UNKNOWN


async def test_a_relay_that_wants_to_know_us_is_told() -> None:
    async with ScriptedRelay() as one:
        one.challenge = "a-challenge"
        one.kept.append(letter("for our eyes"))
        async with connected(one) as (adapter, line):
            (heard,) = await line.hear(1)
            sent = await adapter.send(message())
    proof = next(given for name, given in one.asked if name == "AUTH")
    assert proof["tags"] == [["relay", one.url], ["challenge", "a-challenge"]]
    assert (proof["kind"], proof["pubkey"]) == (22242, US.pubkey)
    assert keys.Event.read(proof).is_signed()
    assert (heard.text, sent.fate) == ("for our eyes", Fate.DELIVERED)


async def test_a_relay_that_shuts_us_out_is_told_of() -> None:
    async with ScriptedRelay() as one:
        one.challenge, one.shut_out = "a-challenge", True
        line = FakeLine(Settings(relays=[one.url]), {"private_key": SECRET})
        with pytest.raises(Unavailable, match="not you"):
            await Nostr(line).run()
        await line.aclose()


async def test_all_that_a_relay_kept_is_read_in_order_of_writing() -> None:
    start = now()
    kept = [letter(f"number {n}", start + n) for n in range(25)]
    async with ScriptedRelay(*kept) as one:
        one.page = 10
        async with connected(one) as (_, line):
            heard = await line.hear(25)
    assert [each.text for each in heard] == [f"number {n}" for n in range(25)]
    assert all(wanted["since"] <= start - 48 * 3600 for _, wanted in one.asked[:2])


async def test_what_was_written_before_we_came_is_not_heard() -> None:
    old = letter("long ago", now() - 24 * 3600)
    async with ScriptedRelay(old, letter("new")) as one, connected(one) as (_, line):
        (heard,) = await line.hear(1)
    assert heard.text == "new"


async def test_the_cursor_is_of_each_relay() -> None:
    async with ScriptedRelay() as one, connected(one) as (_, line):
        first = json.loads(line.cursor)
    assert list(first["relays"]) == [one.url]
    line = FakeLine(Settings(relays=["ws://127.0.0.1:1"]), {"private_key": SECRET})
    line._cursor = json.dumps({"first": 1, "relays": {"ws://a": 10**9}})
    adapter = Nostr(line)
    adapter._read_cursor()
    assert adapter._since("ws://a") == 10**9 - module.BACKWARDS
    assert adapter._since("ws://b") == 0


def sealed_by(author: Any, rumor: Any, **changed: Any) -> Any:
    """Wrap a letter in a seal of somebody's."""
    hidden = letters.encrypted(rumor.as_text(), author.shared_with(US.pubkey))
    seal = author.event(13, hidden, [], now())
    text = json.dumps({**seal.as_json(), **changed})
    once = keys.Identity.new()
    wrapped = letters.encrypted(text, once.shared_with(US.pubkey))
    return once.event(1059, wrapped, [["p", US.pubkey]], now()).as_json()


def forged() -> list[Any]:
    honest = letter("forged")
    to_us = [["p", US.pubkey]]
    of_ada = ADA.unsigned(14, "forged", to_us, now())
    return [
        {**honest, "sig": "0" * 128},
        {**honest, "content": honest["content"][:-4] + "AAAA"},
        {**honest, "id": "0" * 64},
        {**honest, "tags": [["p", 7]]},
        {**honest, "created_at": True},
        sealed_by(EVE, of_ada),
        sealed_by(ADA, of_ada, sig="0" * 128),
        sealed_by(ADA, replace(of_ada, id="0" * 64)),
        sealed_by(ADA, ADA.unsigned(14, "forged", [["p", EVE.pubkey]], now())),
        sealed_by(ADA, ADA.unsigned(7, "forged", to_us, now())),
        sealed_by(US, US.unsigned(14, "forged", to_us, now())),
        ADA.event(4, "forged?iv=x", to_us, now()).as_json(),
        letters.written(ADA, EVE.pubkey, "forged", now()).event.as_json(),
    ]


async def test_what_is_forged_or_malformed_is_passed_over() -> None:
    async with ScriptedRelay() as one, connected(one) as (_, line):
        for text in ("", "[", "{}", "7", "[]", '["EVENT"]', '["EVENT","live"]'):
            await one.raw(text)
        await one.raw("[" * 100_000)
        await one.say("OK", ["x"], {})
        await one.say("OK", "unknown", True)
        await one.say("EOSE", {})
        await one.say("NOTICE", {"a": 1})
        await one.say("CLOSED", "another", "error: none of ours")
        for event in ([], "x", None, {"id": 1}, *forged()):
            await one.say("EVENT", "live", event)
        await one.say("EVENT", "live", letter("honest"))
        heard = await line.hear(1)
    assert [each.text for each in heard] == ["honest"]


async def test_old_letters_are_heard_and_answered_where_they_are_wanted() -> None:
    async with ScriptedRelay() as one, connected(one, nip04=True) as (adapter, line):
        event = letters.written_of_old(ADA, US.pubkey, "as of old", now()).event
        await one.say("EVENT", "live", event.as_json())
        (heard,) = await line.hear(1)
        sent = await adapter.send(message("in kind", heard.place.peer))
    (answer,) = one.taken
    assert heard.sender.id == keys.npub(ADA.pubkey)
    assert heard.text == "as of old"
    assert (answer["kind"], answer["id"]) == (4, sent.message_id)
    assert letters.opened(keys.Event.read(answer), ADA).text == "in kind"


@pytest.mark.parametrize("peer", ["ada", f"npub1{'q' * 58}", f"{NPUB}\n", NPUB[:-1]])
async def test_a_letter_goes_to_a_key(peer: str) -> None:
    async with ScriptedRelay() as one, connected(one) as (adapter, _):
        sent = await adapter.send(message(peer=peer))
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, True)
    assert one.taken == []
