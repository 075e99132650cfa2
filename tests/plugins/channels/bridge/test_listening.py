"""Voice messages are heard by a model that can, or their sender is told."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from agenthost import OPERATOR, AgentView, Context, Payer
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.simulators.listener import Listener
from agenthost_channels.bridge.listening import UNHEARD, Listening, Listens, speech_of
from agenthost_channels.contract import Attachment, Inbound

from .pager import CONFIG, said
from .test_bridge import quiet, rows, started
from .test_files import Courier, asked, workspace

LAST_PAGE = b"OggS\0\4" + (600_000).to_bytes(8, "little") + bytes(20)
VOICE = b"OggS\0\2" + bytes(22) + b"OpusHead" + bytes(30_000) + LAST_PAGE
BOOKED = "SELECT provider, model, input_tokens, cost_micro_usd FROM usage"


def speaking(text: str = "", number: int = 1, name: str = "voice.ogg") -> Inbound:
    file = Attachment(name, "audio/ogg", {"id": name}, len(VOICE))
    return replace(said(text, number), attachments=(file,))


def listening(url: str, more: str = "", provider: str = "") -> str:
    return (
        f'{CONFIG}\n[providers.ear]\nbase_url = "{url}"\napi_key_env = "EAR_KEY"\n'
        f"{provider}\n[transcription]\n"
        f'model = "ear/whisper-1"\ncost_per_minute = 0.06\n{more}\n'
    )


async def begun(daemons: Daemons, courier: Courier, config: str) -> RunningDaemon:
    environ = {"EAR_KEY": "canary-of-the-ear"}
    running = await daemons.start(config=config, plugins=[courier], environ=environ)
    await running.agent("helper")
    return running


@pytest.mark.setting("transcription.model")
@pytest.mark.setting("transcription.language")
@pytest.mark.setting("transcription.cost_per_minute")
async def test_a_voice_message_is_heard_once_and_paid_for(daemons: Daemons) -> None:
    courier = Courier({"voice.ogg": VOICE})
    async with Listener() as listener:
        listener.says = "Buy milk.\u202e\x07\nAnd eggs."
        config = listening(listener.url, 'language = "en"')
        running = await begun(daemons, courier, config)
        line = await courier.line()
        running.model.says("noted")
        await line.received(speaking("please"))
        await quiet(running)
        (heard,) = listener.heard
        assert (heard.audio, heard.name) == (VOICE, "audio.ogg")
        assert heard.media_type == "audio/ogg"
        fields = {"model": "whisper-1", "response_format": "json", "language": "en"}
        assert heard.fields == fields
        assert heard.key == "canary-of-the-ear"
        words = asked(running)
        assert words.startswith("please\n\n[file received/")
        assert words.endswith("transcribed:]\nBuy milk.\nAnd eggs.")
        assert [each.text for each in courier.sent] == ["noted"]
        booked = await rows(running, f"{BOOKED} WHERE provider = 'ear'")
        # Half a minute at six cents a minute.
        assert booked == [("ear", "whisper-1", 30, 30_000)]
        (kept,) = workspace(running).rglob("voice.ogg.txt")
        assert kept.read_text() == "Buy milk.\nAnd eggs."
        # When the same message is answered anew, what was heard is there.
        path = str(kept.relative_to(workspace(running))).removesuffix(".txt")
        agent = running.daemon.agents.find("helper")
        again = Listening(running.daemon)
        speech = "audio/ogg", VOICE
        known = await again.heard(path, speech, agent, Context(OPERATOR))
        assert known == "Buy milk.\nAnd eggs."
        assert len(listener.heard) == 1


@pytest.mark.parametrize(
    ("more", "answers", "calls"),
    [
        ('model = "off"', [], 0),
        ('model = "nobody/whisper"', [], 0),
        ("max_mb = 1", [], 0),
        ("", [(401, b'{"error": {"message": "wrong key"}}', {})], 1),
        ("", [(400, b"\xff not JSON", {})], 1),
        ("", [(200, b'{"text": 7}', {})] * 8, None),
        ("", [(200, b"<html>", {})] * 8, None),
    ],
)
@pytest.mark.setting("transcription.max_mb")
async def test_who_speaks_is_told_that_nobody_could_listen(
    daemons: Daemons,
    more: str,
    answers: list[tuple[int, bytes, dict[str, str]]],
    calls: int | None,
) -> None:
    data = VOICE + bytes(1_000_000) if "max_mb" in more else VOICE
    courier = Courier({"voice.ogg": data})
    async with Listener() as listener:
        listener.answers = [*answers]
        config = listening(listener.url)
        if more.startswith("model"):
            config = config.replace('model = "ear/whisper-1"', more)
        else:
            config += more
        running = await begun(daemons, courier, config)
        line = await courier.line()
        running.model.says("what did you want?")
        await line.received(speaking("hi"))
        await quiet(running)
        assert calls is None or len(listener.heard) == calls
    assert [each.text for each in courier.sent] == [f"{UNHEARD}\n\nwhat did you want?"]
    assert "nobody could listen to it" in asked(running)


async def test_a_service_that_is_busy_is_asked_again(daemons: Daemons) -> None:
    courier = Courier({"voice.ogg": VOICE})
    async with Listener() as listener:
        busy = json.dumps({"error": {"message": "slow down"}}).encode()
        listener.answers = [(429, busy, {"retry-after": "0"}), (503, busy, {})]
        running = await begun(daemons, courier, listening(listener.url))
        line = await courier.line()
        running.model.says("noted")
        await line.received(speaking())
        await quiet(running)
        assert len(listener.heard) == 3
    assert asked(running).endswith("hello from a voice")


async def test_a_spent_budget_hears_nothing_and_says_so(daemons: Daemons) -> None:
    courier = Courier({"voice.ogg": VOICE})
    async with Listener() as listener:
        config = listening(listener.url).replace("= 0.06", "= 60.0")
        config += "\n[budget]\nmax_daily_usd = 20.0\n"
        running = await begun(daemons, courier, config)
        line = await courier.line()
        running.model.says("yes?")
        await line.received(speaking())
        await quiet(running)
        assert listener.heard == []
    assert courier.sent[0].text.startswith(UNHEARD)


async def test_without_a_word_of_it_in_the_settings_nobody_listens(
    daemons: Daemons,
) -> None:
    courier = Courier({"voice.ogg": VOICE, "a.png": b"\x89PNG\r\n\x1a\n"})
    running = await started(daemons, courier)
    line = await courier.line()
    running.model.says("one")
    await line.received(speaking())
    await quiet(running)
    running.model.says("two")
    picture = Attachment("a.png", "image/png", {"id": "a.png"})
    await line.received(replace(said("look", 2), attachments=(picture,)))
    await quiet(running)
    assert [each.text for each in courier.sent] == [f"{UNHEARD}\n\none", "two"]


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "gpt-4o-mini-transcribe"), ("groq", "whisper-large-v3-turbo")],
)
async def test_an_agents_own_provider_listens_where_it_is_known_to(
    daemons: Daemons, provider: str, model: str
) -> None:
    async with Listener() as listener:
        listener.usage = None
        config = f'[providers.{provider}]\nbase_url = "{listener.url}"\n'
        environ = {f"{provider.upper()}_API_KEY": "canary-of-the-vendor"}
        running = await daemons.start(config=config, environ=environ)
        manifest = f'[model]\nprovider = "{provider}"\nmodel = "any"'
        await running.agent("helper", extra=manifest)
        agent = running.daemon.agents.find("helper")
        view = AgentView(agent.id, agent.name, agent.manifest, agent.session_id)
        models = running.daemon.models
        assert isinstance(models, Listens)
        words = await models.transcribe(VOICE, "audio/ogg", Payer(view, ""))
        assert words == "hello from a voice"
        (heard,) = listener.heard
        assert heard.fields["model"] == model
        booked: list[tuple[object, ...]] = []
        async with asyncio.timeout(20):
            while not booked:
                sql = "SELECT input_tokens, cost_micro_usd FROM usage"
                booked = await rows(running, sql)
        ((tokens, cost),) = booked
    # What is not told stands in the file: its last sample is at 12.5 s.
    assert tokens == 13
    assert cost in range(1, 1_000)


@pytest.mark.conformance
async def test_the_request_is_that_of_the_vendors_client(daemons: Daemons) -> None:
    openai = pytest.importorskip("openai")
    courier = Courier({"voice.ogg": VOICE})
    async with Listener() as listener:
        config = listening(listener.url, 'language = "en"')
        running = await begun(daemons, courier, config)
        line = await courier.line()
        running.model.says("noted")
        await line.received(speaking())
        await quiet(running)
        key = "canary-of-the-ear"
        async with openai.AsyncOpenAI(api_key=key, base_url=listener.url) as client:
            said = await client.audio.transcriptions.create(
                file=("audio.ogg", VOICE, "audio/ogg"),
                model="whisper-1",
                response_format="json",
                language="en",
            )
        assert said.text == "hello from a voice"
        ours, theirs = listener.heard
    assert ours == theirs


def test_speech_is_told_by_its_bytes() -> None:
    wave = b"RIFF\0\0\0\0WAVEfmt "
    known = {
        b"OggS" + bytes(60): "audio/ogg",
        b"ID3\4": "audio/mpeg",
        b"\xff\xfb\x90": "audio/mpeg",
        b"fLaC\0": "audio/flac",
        b"\x1a\x45\xdf\xa3": "audio/webm",
        b"\0\0\0\x20ftypM4A ": "audio/mp4",
        wave: "audio/wav",
    }
    for data, kind in known.items():
        assert speech_of("audio/ogg", data) == kind
        assert speech_of("video/mp4", data) == ""
    assert speech_of("application/octet-stream", VOICE) == "audio/ogg"
    for data in (b"", b"\xff", b"#!/bin/sh", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0AVI "):
        assert speech_of("audio/ogg", data) == ""
