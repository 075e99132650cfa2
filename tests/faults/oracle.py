"""A model service whose answer to every question is known before it is asked.

It answers ``ANS:`` and the last thing the user said. A test may tell it, question by
question, to wait, to refuse or to break off.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from enum import StrEnum
from types import TracebackType
from typing import Self

from agenthost.testing.simulators import Heard, Turn
from agenthost.testing.simulators.openai_chat import OpenAIChatWire
from aiohttp import web

WIRE = OpenAIChatWire()
BROKEN = {"error": {"message": "scripted to break off", "code": "invalid_prompt"}}
CONFIG = """\
[default_model]
provider = "oracle"
model = "oracle-1"

[providers.oracle]
dialect = "openai-chat"
base_url = "{base_url}"

[rate_limit]
enabled = false

[compaction]
threshold_messages = 10
keep_recent = 4
"""


class Manner(StrEnum):
    """How a question is answered."""

    SAYS = "says"
    WAITS = "waits before the first word"
    PAUSES = "pauses among the words"
    REFUSES = "refuses"
    BREAKS = "breaks off among the words"


def answer_to(question: str) -> str:
    """The one right answer."""
    return f"ANS:{question}"


class Scene:
    """What becomes of one question."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self.reached = asyncio.Event()
        self.left = asyncio.Event()
        self.answered = asyncio.Event()
        self._go_on = asyncio.Event()

    @property
    def waiting(self) -> bool:
        """Whether the model stands still on this question now."""
        done = self.left.is_set() or self._go_on.is_set()
        return self.reached.is_set() and not done

    def release(self) -> None:
        """Let the model speak on, now or when it is asked."""
        self._go_on.set()

    async def stand_still(self) -> None:
        """Wait for the release."""
        self.reached.set()
        await self._go_on.wait()


class Oracle:
    """The service on a loopback port, in the loop of the test."""

    def __init__(self) -> None:
        self.scenes: dict[str, Scene] = {}
        self.heard: list[tuple[str, ...]] = []
        self.asked: Counter[str] = Counter()
        app = web.Application()
        app.router.add_post(WIRE.path, self._serve)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )

    @property
    def config(self) -> str:
        """A ``config.toml`` whose only model stands here."""
        host, port = self._runner.addresses[0][:2]
        return CONFIG.format(base_url=f"http://{host}:{port}/v1")

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        heard = WIRE.hear(
            {name.lower(): value for name, value in request.headers.items()},
            await request.read(),
        )
        question = heard.said[-1]
        scene = self.scenes.get(question) or Scene(Manner.SAYS)
        self.heard.append(heard.said)
        self.asked[question] += 1
        if scene.manner is Manner.REFUSES:
            scene.answered.set()
            return web.Response(status=400, body=WIRE.refusal(400, "scripted"))
        try:
            return await self.answer(request, scene, heard)
        except (ConnectionError, asyncio.CancelledError):
            scene.left.set()
            raise

    async def answer(
        self, request: web.Request, scene: Scene, heard: Heard
    ) -> web.StreamResponse:
        """Answer as the scene says."""
        return await _spoken(request, scene, self.turn(heard))

    def turn(self, heard: Heard) -> Turn:
        """What is answered when nothing goes wrong."""
        question = heard.said[-1]
        return Turn(answer_to(question) if question in self.scenes else "a summary")


async def _spoken(request: web.Request, scene: Scene, turn: Turn) -> web.StreamResponse:
    """Stream the answer; half of its words come before the pause."""
    answer = web.StreamResponse(headers={"Content-Type": WIRE.content_type})
    await answer.prepare(request)
    events = WIRE.events(turn)
    half = {Manner.WAITS: 0, Manner.PAUSES: 3, Manner.BREAKS: 3}.get(scene.manner)
    for number, event in enumerate(events):
        if number == half:
            if scene.manner is Manner.BREAKS:
                await answer.write(f"data: {json.dumps(BROKEN)}\n\n".encode())
                break
            await scene.stand_still()
        await answer.write(event)
    scene.answered.set()
    await answer.write_eof()
    return answer
