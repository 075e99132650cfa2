"""A result is delivered once; how that went is an outcome, never a failure of it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import (
    DeliverySpec,
    Host,
    NotSent,
    OutcomeUnknown,
    Parcel,
    ProviderFault,
    hookimpl,
)
from agenthost.testing import Daemons, ManualClock, Pause
from agenthost_orchestration.background.errands import (
    Creator,
    Delivery,
    Errand,
    Occasion,
    OccasionState,
)

from .post_box import CUT, DRIP, HANG, post_box
from .stage import ME, Stage, stage_of

LOCAL = '[background]\nwebhook_allowed_hosts = ["127.0.0.1"]\n'
SECRET = "sesame-open-up"


class Hasty(ManualClock):
    """A clock on which nobody sleeps for long."""

    async def sleep(self, seconds: float) -> None:
        if seconds > 100:
            await super().sleep(seconds)
        self._passed += seconds
        self.slept = [*getattr(self, "slept", []), seconds]
        await asyncio.sleep(0)


async def stage_with(daemons: Daemons, delivery: Delivery, **options: Any) -> Stage:
    """A stage whose errand is delivered so."""
    stage = stage_of(await daemons.start(**options))
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "ring", delivery=delivery)
    return stage


@pytest.mark.setting("background.webhook_secret", "background.webhook_allowed_hosts")
async def test_a_webhook_is_signed_and_names_the_occasion(daemons: Daemons) -> None:
    config = f'{LOCAL}webhook_secret = "{SECRET}"\n'
    async with post_box() as box:
        delivery = Delivery("webhook", box.url)
        stage = await stage_with(daemons, delivery, config=config)
        done = await stage.done()
    assert done.delivered == "done"
    ((headers, body),) = box.taken
    assert headers["webhook-id"] == headers["idempotency-key"] == done.id
    signed = f"{done.id}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()
    expected = f"v1,{base64.b64encode(digest).decode()}"
    assert headers["webhook-signature"] == expected
    (told,) = box.bodies
    assert (told["id"], told["text"]) == (done.id, "You said: ring")
    assert (told["source_id"], told["state"]) == ("noon", "done")


async def test_a_busy_receiver_is_tried_again_with_the_same_id(
    daemons: Daemons,
) -> None:
    async with post_box(500, (429, 7), CUT) as box:
        clock = Hasty()
        delivery = Delivery("webhook", box.url)
        stage = await stage_with(daemons, delivery, config=LOCAL, clock=clock)
        done = await stage.done()
    assert done.delivered == "done"
    assert [headers["webhook-id"] for headers, _ in box.taken] == [done.id] * 4
    assert len(stage.daemon.model.requests) == 1
    assert [each for each in clock.slept if each in {1.0, 7.0, 16.0}] == [1, 7, 16]


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((500, 500, 500, 503), "the receiver answered 503; it was tried 4 times"),
        ((404,), "the receiver answered 404; correct the target"),
        ((302,), "the receiver answered 302"),
        ((CUT, 500, 500, 500), "unknown: the receiver answered 500"),
    ],
)
async def test_what_is_not_taken_is_told(
    daemons: Daemons, answers: tuple[Any, ...], words: str
) -> None:
    async with post_box(*answers) as box:
        delivery = Delivery("webhook", box.url)
        stage = await stage_with(daemons, delivery, config=LOCAL, clock=Hasty())
        done = await stage.done()
    assert done.state is OccasionState.DONE
    assert words in done.delivered
    assert len(box.taken) == len(answers)


@pytest.mark.conformance
async def test_a_receiver_that_drips_has_taken_it(daemons: Daemons) -> None:
    async with post_box(DRIP) as box:
        delivery = Delivery("webhook", box.url)
        stage = await stage_with(daemons, delivery, config=LOCAL)
        assert (await stage.done()).delivered == "done"


@pytest.mark.conformance
async def test_a_receiver_that_hangs_is_given_up(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_orchestration.background.webhook.CONNECT", 0.1)
    monkeypatch.setattr("agenthost_orchestration.background.webhook.IN_ALL", 0.2)
    async with post_box(HANG, HANG, HANG, HANG) as box:
        delivery = Delivery("webhook", box.url)
        stage = await stage_with(daemons, delivery, config=LOCAL, clock=Hasty())
        done = await stage.done()
    assert done.delivered.startswith("unknown: ")
    assert "it was tried 4 times" in done.delivered
    # On a busy machine a try may end before it has arrived.
    assert 0 < len(box.taken) <= 4


@pytest.mark.conformance
@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:9/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "ftp://example.org/",
        "not a url",
        "",
        "http://exa mple/\r\nx: y",
    ],
)
async def test_a_webhook_reaches_no_place_within(daemons: Daemons, target: str) -> None:
    stage = await stage_with(daemons, Delivery("webhook", target), clock=Hasty())
    done = await stage.done()
    assert done.state is OccasionState.DONE
    assert done.delivered not in {"", "done"}
    assert not done.delivered.startswith("unknown")


@pytest.mark.conformance
async def test_an_agent_posts_only_where_it_may_reach(daemons: Daemons) -> None:
    async with post_box() as box:
        stage = stage_of(await daemons.start(config=LOCAL))
        manifest = 'name = "eve"\n'
        body = {"manifest_toml": manifest}
        answer = await stage.daemon.http.post("/api/agents", json=body)
        eve = answer.json()["agent_id"]
        stage.dial.errands["noon"] = Errand(
            Creator("agent", eve), eve, "one", delivery=Delivery("webhook", box.url)
        )
        done = await stage.done()
    assert "'network'" in done.delivered
    assert box.taken == []


@pytest.mark.conformance
async def test_a_result_is_said_in_a_session(daemons: Daemons) -> None:
    stage = await stage_with(daemons, Delivery("session"))
    agent = stage.daemon.known_agent("ada")
    await agent.ask("hello")
    done = await stage.done()
    assert done.delivered == "done"
    said = (await agent.session())["messages"]
    assert [each["content"] for each in said][2:] == [
        "[Told from elsewhere: schedule noon]",
        "You said: ring",
    ]
    # The next turn knows of it, and its numbers are right.
    assert await agent.ask("and?") == "You said: and?"
    assert len(stage.daemon.model.requests[-1].messages) == 5


async def test_a_result_is_said_in_another_session_once(daemons: Daemons) -> None:
    from agenthost_orchestration.background.delivering import deliver_once
    from agenthost_orchestration.background.writes import note

    stage = await stage_with(daemons, Delivery("session"))
    host = stage.daemon.daemon
    agent = stage.daemon.known_agent("ada")
    other = await host.sessions.open(agent.id, "diary")
    errand = stage.dial.errands["noon"]
    errand = replace(errand, delivery=Delivery("session", other.id))
    stage.dial.errands["noon"] = replace(errand, labels=frozenset({"untrusted"}))
    done = await stage.done()
    assert done.delivered == "done"
    # As after a crash between the message and the word that it was delivered.
    unknown = "unknown: the process died while it was delivered"
    await host.store.write(lambda c: note(c, done.id, {"delivered": unknown}))
    worker = stage.background._worker
    assert worker is not None
    assert await deliver_once(host, await worker.read(done.id)) == "done"
    entries = await host.sessions.entries(await host.sessions.get(other.id))
    assert [each.message.text for each in entries][1:] == ["You said: ring"]
    assert {each.labels for each in entries} == {frozenset({"untrusted"})}


@pytest.mark.conformance
@pytest.mark.parametrize("broken", ["gone", "archived"])
async def test_a_session_that_takes_nothing_is_told(
    daemons: Daemons, broken: str
) -> None:
    stage = await stage_with(daemons, Delivery())
    host, agent = stage.daemon.daemon, stage.daemon.known_agent("ada")
    other = await host.sessions.open(agent.id, "diary")
    if broken == "gone":
        await host.sessions.erase(other.id)
    else:
        await host.sessions.archive(other.id)
    delivery = Delivery("session", other.id)
    errand = replace(stage.dial.errands["noon"], delivery=delivery)
    stage.dial.errands["noon"] = errand
    done = await stage.done()
    assert done.state is OccasionState.DONE
    assert "session" in done.delivered


@pytest.mark.conformance
async def test_a_failure_is_delivered_with_its_reason(daemons: Daemons) -> None:
    stage = await stage_with(daemons, Delivery("session"))
    stage.daemon.model.fails(ProviderFault.BAD_REQUEST)
    done = await stage.done()
    assert (done.state, done.delivered) == (OccasionState.FAILED, "done")
    said = (await stage.daemon.known_agent("ada").session())["messages"]
    assert "scripted to fail" in said[-1]["content"]


class Printer:
    """Prints, or fails as a test says."""

    def __init__(
        self, error: BaseException | None = None, *, again: bool = False
    ) -> None:
        self.error, self.again = error, again
        self.printed: list[Parcel] = []

    async def print_out(self, host: Host, parcel: Parcel) -> None:
        self.printed.append(parcel)
        if self.error is not None:
            raise self.error

    @property
    def plugin(self) -> SimpleNamespace:
        @hookimpl
        def register_delivery() -> Iterable[DeliverySpec]:
            yield DeliverySpec("printer", self.print_out, self.again)

        return SimpleNamespace(__name__="printer", register_delivery=register_delivery)


async def test_register_delivery(daemons: Daemons) -> None:
    printer = Printer()
    delivery = Delivery("printer", "tray 2")
    stage = await stage_with(daemons, delivery, plugins=[printer.plugin])
    done = await stage.done()
    assert done.delivered == "done"
    (parcel,) = printer.printed
    assert (parcel.id, parcel.target) == (done.id, "tray 2")
    assert parcel.text == "You said: ring"
    assert parcel.context.principal.name == "operator"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("secret words"), "the delivery 'printer' failed"),
        (SystemExit(1), "raised SystemExit"),
        (NotSent("it is off"), "it is off"),
        (OutcomeUnknown("the paper jammed"), "unknown: the paper jammed"),
    ],
)
async def test_a_delivery_that_raises_is_told_and_nothing_else_fails(
    daemons: Daemons, error: BaseException, told: str
) -> None:
    printer = Printer(error)
    stage = await stage_with(daemons, Delivery("printer"), plugins=[printer.plugin])
    done = await stage.done()
    assert done.state is OccasionState.DONE
    assert told in done.delivered
    assert "secret" not in done.delivered
    assert len(printer.printed) == 1


@pytest.mark.conformance
async def test_a_way_that_nobody_offers_is_told(daemons: Daemons) -> None:
    stage = await stage_with(daemons, Delivery("pigeon"))
    assert (await stage.done()).delivered == "no plugin offers the delivery 'pigeon'"


@pytest.mark.conformance
@pytest.mark.parametrize("again", [False, True])
async def test_what_may_have_arrived_is_sent_again_only_where_it_is_known(
    daemons: Daemons, again: bool
) -> None:
    from agenthost_orchestration.background.delivering import UNKNOWN, deliver_once
    from agenthost_orchestration.background.writes import note

    printer = Printer(again=again)
    stage = await stage_with(daemons, Delivery("printer"), plugins=[printer.plugin])
    done, host = await stage.done(), stage.daemon.daemon
    await host.store.write(lambda c: note(c, done.id, {"delivered": UNKNOWN}))
    worker = stage.background._worker
    assert worker is not None
    said = await deliver_once(host, await worker.read(done.id))
    assert said == ("done" if again else UNKNOWN)
    assert len(printer.printed) == 1 + again


@pytest.mark.conformance
async def test_who_was_revoked_meanwhile_sends_nothing(daemons: Daemons) -> None:
    printer = Printer()
    config = 'api_key = "master-key-0123456789"\n'
    stage = stage_of(await daemons.start(config=config, plugins=[printer.plugin]))
    http = stage.daemon.http
    http.headers["authorization"] = "Bearer master-key-0123456789"
    made = await http.post("/api/keys", json={"name": "ci", "scopes": ["chat"]})
    agent = await stage.daemon.agent("ada")
    creator, delivery = Creator("named_key", "ci"), Delivery("printer")
    errand = Errand(creator, agent.id, "one", delivery=delivery)
    stage.dial.errands["noon"] = errand
    pause = Pause()
    stage.daemon.model.says(pause, "done")
    due = await stage.due()
    await asyncio.wait_for(pause.reached.wait(), 30)
    await http.delete(f"/api/keys/{made.json()['id']}")
    pause.go_on()
    done: Occasion = await stage.ended(due)
    assert "may not any more" in done.delivered
    assert printer.printed == []
