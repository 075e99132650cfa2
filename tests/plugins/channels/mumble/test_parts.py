"""What needs no server: texts, frames, people and the pace."""

import asyncio
import struct
from unittest.mock import Mock

import pytest
from agenthost import Unavailable
from agenthost_channels.contract import Fate, Outbound, Place
from agenthost_channels.mumble.adapter import Mumble, Settings
from agenthost_channels.mumble.people import Person
from agenthost_channels.mumble.texts import plain, printable
from agenthost_channels.testing import FakeLine
from agenthost_channels.testing.stages.mumble_person import decoded, encoded
from pydantic import ValidationError

wires = pytest.importorskip("agenthost_channels.mumble.wire")
messages = pytest.importorskip("agenthost_channels.mumble.messages")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain", "plain"),
        ("one<br />two<br><br/>four", "one\ntwo\n\nfour"),
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<b>a</b> &lt;b&gt; &amp;amp; &#x1f468;", "a <b> &amp; \U0001f468"),
        ("<style>p {}</style><head><title>t</title></head>seen", "seen"),
        ("</style>still seen", "still seen"),
        ("a\x00b\x1bc", "abc"),
        ('<img src="data:image/png;base64,AAAA"/>', ""),
    ],
)
def test_a_message_is_read_as_words(html: str, text: str) -> None:
    assert plain(html) == text


def test_what_no_message_may_hold_is_taken_away() -> None:
    assert printable("a\x00\r\x1b\ud800\nb\tc") == "a\nb\tc"


def test_our_messages_are_those_of_another_reader() -> None:
    for name, fields, expected in (
        ("TextMessage", {"session": [7, 300], "message": "x"}, [(2, 7), (2, 300)]),
        ("Ping", {"timestamp": 1 << 40}, [(1, 1 << 40)]),
        ("UserState", {"session": 5, "self_deaf": True}, [(1, 5), (10, 1)]),
    ):
        body = messages.CLASSES[name](**fields).SerializeToString()
        found = decoded(body)
        assert found[: len(expected)] == expected
        assert messages.CLASSES[name].FromString(encoded(found)) == messages.CLASSES[
            name
        ](**fields)


async def read(data: bytes) -> tuple[str, object]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    found: tuple[str, object] = await wires.Wire(reader, Mock()).read()
    return found


async def test_what_is_unknown_or_broken_is_passed_over() -> None:
    voice = struct.pack(">HI", 1, 3) + b"abc"
    broken = struct.pack(">HI", 11, 2) + b"\x2a\xff"
    right = struct.pack(">HI", 3, 2) + b"\x08\x07"
    name, message = await read(voice + broken + right)
    assert (name, getattr(message, "timestamp", 0)) == ("Ping", 7)


@pytest.mark.parametrize("data", [b"", b"\0\x03", struct.pack(">HI", 3, 1 << 30)])
async def test_what_ends_or_is_too_long_ends_the_connection(data: bytes) -> None:
    with pytest.raises(Unavailable):
        await read(data)


def test_a_person_is_what_stays() -> None:
    state = messages.CLASSES["UserState"]
    person = Person(4).changed(state(session=4, name="Ada", channel_id=2))
    assert person.id == "name:Ada"
    person = person.changed(state(session=4, hash="ab"))
    assert person.id == "cert:ab"
    registered = person.changed(state(session=4, user_id=0))
    assert (registered.id, registered.name, registered.channel) == ("user:0", "Ada", 2)


class StandingClock:
    """A clock that only goes on while somebody sleeps."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


async def test_we_are_never_faster_than_the_server_allows() -> None:
    line = FakeLine(Settings(server="127.0.0.1", burst=3, seconds_per_message=2))
    line.clock = clock = StandingClock()  # type: ignore[assignment]
    adapter = Mumble(line)
    for _ in range(5):
        await adapter._wait_for_turn()
    assert clock.slept == [2, 2]
    clock.time += 100
    for _ in range(3):
        await adapter._wait_for_turn()
    assert clock.slept == [2, 2]


@pytest.mark.parametrize("given", ["00", "0" * 63, "zz" * 32])
def test_a_fingerprint_has_its_form(given: str) -> None:
    with pytest.raises(ValidationError, match="fingerprint"):
        Settings(server="a", fingerprint=given)


async def test_nothing_is_sent_where_nobody_is_connected() -> None:
    adapter = Mumble(FakeLine(Settings(server="127.0.0.1")))
    sent = await adapter.send(Outbound("k", Place("default", "user:1"), "hello"))
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, False)
