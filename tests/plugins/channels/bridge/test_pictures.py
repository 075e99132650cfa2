"""A picture that somebody sends is shown to a model that sees, and to no other."""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable

import pytest
from agenthost import File, Image, Text
from agenthost.testing import Daemons, RunningDaemon, ScriptedModel
from agenthost_channels.bridge.pictures import LARGEST, kind_of, seen

from tests.plugins.http_api.pictures import EYES, PNG, seer

from .pager import CONFIG, said
from .test_bridge import quiet, rows, started
from .test_files import Courier, asked, carrying

SIDES = (640, 480)


def png(width: int = 640, height: int = 480) -> bytes:
    head = struct.pack(">I4sII", 13, b"IHDR", width, height)
    return b"\x89PNG\r\n\x1a\n" + head + bytes(8) + b"IEND\xaeB`\x82"


def gif(width: int = 640, height: int = 480) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3) + b";"


def jpeg(width: int = 640, height: int = 480) -> bytes:
    first = b"\xff\xd8\xff\xe0" + struct.pack(">H", 4) + b"JF"
    frame = b"\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width)
    return first + frame + bytes(20) + b"\xff\xd9"


def webp(inside: bytes) -> bytes:
    whole = b"WEBP" + inside.ljust(30, b"\0")
    return b"RIFF" + struct.pack("<I", len(whole)) + whole


def lossless(width: int = 640, height: int = 480) -> bytes:
    sides = (width - 1) | (height - 1) << 14
    return webp(b"VP8L" + bytes(4) + b"/" + struct.pack("<I", sides))


def lossy(width: int = 640, height: int = 480) -> bytes:
    return webp(b"VP8 " + bytes(10) + struct.pack("<HH", width, height))


def extended(width: int = 640, height: int = 480) -> bytes:
    sides = [(each - 1).to_bytes(3, "little") for each in (width, height)]
    return webp(b"VP8X" + bytes(8) + b"".join(sides))


MADE: dict[Callable[[int, int], bytes], str] = {
    png: "image/png",
    gif: "image/gif",
    jpeg: "image/jpeg",
    lossless: "image/webp",
    lossy: "image/webp",
    extended: "image/webp",
}


@pytest.mark.parametrize("make", MADE)
def test_a_whole_picture_is_shown_and_no_other(
    make: Callable[[int, int], bytes],
) -> None:
    whole = make(*SIDES)
    assert kind_of(whole) == MADE[make]
    for end in range(len(whole)):
        assert kind_of(whole[:end]) == ""
    for sides in ((8000, 1), (1, 8000)):
        assert kind_of(make(*sides)) == MADE[make]
    for sides in ((8001, 1), (1, 8001)):
        assert kind_of(make(*sides)) == ""


@pytest.mark.parametrize("make", [png, gif, jpeg])
def test_a_picture_without_a_side_is_none(make: Callable[[int, int], bytes]) -> None:
    assert kind_of(make(0, 480)) == kind_of(make(640, 0)) == ""


def test_any_bytes_are_a_picture_or_none() -> None:
    dice = random.Random(7)
    for make in MADE:
        for _ in range(300):
            broken = bytearray(make(*SIDES))
            broken[dice.randrange(len(broken))] = dice.randrange(256)
            kind_of(bytes(broken))
    assert kind_of(b"\xff\xd8\xff\xe0\0\0" * 100_000 + b"\xff\xd9") == ""


def test_what_has_no_room_left_is_not_shown() -> None:
    known = File("a", "image/png", base64.b64encode(PNG).decode())
    assert seen("a", PNG, len(PNG)) == known
    assert seen("a", PNG, len(PNG) - 1) is None
    assert LARGEST == 2_600_000


Eyes = tuple[RunningDaemon, Courier, ScriptedModel]


async def seeing(daemons: Daemons, pager: Courier) -> Eyes:
    model = ScriptedModel()
    running = await daemons.start(config=CONFIG, plugins=[pager, seer(model)])
    await running.agent("helper", extra=EYES)
    await pager.line()
    return running, pager, model


def images(model: ScriptedModel) -> list[bytes]:
    """Give the pictures of all that the model was asked last."""
    parts = (part for each in model.requests[-1].messages for part in each.parts)
    return [base64.b64decode(part.data) for part in parts if isinstance(part, Image)]


async def test_a_model_that_sees_is_shown_what_people_send(daemons: Daemons) -> None:
    stored = {"a.png": PNG, "b.png": PNG[:-1], "c.txt": b"words"}
    running, pager, model = await seeing(daemons, Courier(stored))
    await pager.lines[-1].received(carrying(said("look"), *stored, "gone.png"))
    await quiet(running)
    words, image = model.requests[-1].messages[-1].parts
    assert isinstance(words, Text)
    assert words.text.startswith("look\n\n[file received/")
    assert words.text.count("in your workspace]") == 3
    assert image == Image("image/png", base64.b64encode(PNG).decode())
    # It stays in the conversation, and in no list of files that were handed in.
    await pager.lines[-1].received(said("and now?", 2))
    await quiet(running)
    assert images(model) == [PNG]
    turn = await rows(running, "SELECT DISTINCT session_id FROM messages")
    told = await running.http.get(f"/api/sessions/{turn[0][0]}")
    assert told.status_code == 200, told.text
    assert "in your workspace" in told.text
    assert '"files"' not in told.text


async def test_a_picture_alone_is_a_question(daemons: Daemons) -> None:
    running, pager, model = await seeing(daemons, Courier({"a.png": PNG}))
    await pager.lines[-1].received(carrying(said(""), "a.png"))
    await quiet(running)
    assert images(model) == [PNG]


async def test_pictures_of_a_message_have_so_much_room(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_channels.bridge.files.LARGEST", 2 * len(PNG))
    stored = {"a.png": PNG, "b.png": png() + bytes(9), "c.png": PNG, "d.png": PNG}
    running, pager, model = await seeing(daemons, Courier(stored))
    await pager.lines[-1].received(carrying(said("look"), *stored))
    await quiet(running)
    assert images(model) == [PNG, PNG]


async def test_a_model_without_eyes_is_told_in_words(daemons: Daemons) -> None:
    pager = Courier({"a.png": PNG})
    running = await started(daemons, pager)
    await (await pager.line()).received(carrying(said("look"), "a.png"))
    await quiet(running)
    assert running.model.requests[-1].messages[-1].parts == (Text(asked(running)),)
    assert "image/png" in asked(running)
