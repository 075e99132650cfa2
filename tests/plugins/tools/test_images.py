"""Pictures are told by their first bytes, whatever those are."""

from __future__ import annotations

import base64
import random
import struct

import pytest
from agenthost import Image, ToolContext
from agenthost_tools.image_analyze import ImageAnalyze, image_analyze, kind_of

from .conftest import AGENT_ID

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480)
JPEG = b"\xff\xd8\xff\xe0" + struct.pack(">H", 4) + b"JF"
JPEG += b"\xff\xc0" + struct.pack(">HBHH", 17, 8, 480, 640)
RIFF = b"RIFF\0\0\0\0WEBP"
KINDS = {
    "image/png": PNG,
    "image/jpeg": JPEG,
    "image/gif": b"GIF89a" + struct.pack("<HH", 640, 480),
}
WEBP = (
    RIFF + b"VP8X" + bytes(8) + (639).to_bytes(3, "little") + b"\xdf\x01\x00",
    RIFF + b"VP8L" + bytes(4) + b"/" + (639 | 479 << 14).to_bytes(4, "little"),
    RIFF + b"VP8 " + bytes(10) + struct.pack("<HH", 640, 480),
)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_picture_tells_its_kind_and_size(kind: str) -> None:
    assert kind_of(KINDS[kind]) == (kind, (640, 480))


@pytest.mark.parametrize("data", WEBP)
def test_each_form_of_webp_is_known(data: bytes) -> None:
    assert kind_of(data) == ("image/webp", (640, 480))


def test_cut_and_broken_pictures_are_none_and_never_raise() -> None:
    dice = random.Random(7)
    for whole in (*KINDS.values(), *WEBP):
        for end in range(len(whole)):
            assert kind_of(whole[:end]) is None
        for _ in range(200):
            broken = bytearray(whole)
            broken[dice.randrange(len(broken))] = dice.randrange(256)
            kind_of(bytes(broken))
    assert kind_of(b"\xff\xd8\xff\xe0\0\0" * 100_000) is None


async def test_the_model_gets_the_picture_and_the_words(context: ToolContext) -> None:
    context.host.files.workspace(AGENT_ID).write("a.png", PNG)
    said = await image_analyze(context, ImageAnalyze(path="a.png", prompt="clouds"))
    assert said.text == "image/png, 640 x 480 pixels, 24 bytes\nLook for: clouds"
    assert said.parts == (Image("image/png", base64.b64encode(PNG).decode()),)
