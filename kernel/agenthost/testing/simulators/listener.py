"""A service that transcribes, as OpenAI's API reference has it, on a loopback port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Listened:
    """One request: the fields of its form, and the file."""

    key: str
    fields: dict[str, str]
    name: str
    media_type: str
    audio: bytes


class Listener:
    """Says what the test wants it to have heard.

    Attributes:
        says: What is said in every file.
        answers: Statuses, bodies and headers of the next answers, instead.
        heard: The requests that came.
    """

    def __init__(self) -> None:
        self.says = "hello from a voice"
        self.usage: dict[str, Any] | None = {"type": "duration", "seconds": 30}
        self.answers: list[tuple[int, bytes, dict[str, str]]] = []
        self.heard: list[Listened] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/audio/transcriptions", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        fields = {key: value for key, value in form.items() if isinstance(value, str)}
        file = form["file"]
        if not isinstance(file, web.FileField):
            return web.json_response({"error": {"message": "no file"}}, status=400)
        bearer = request.headers.get("authorization", "")
        key = bearer.removeprefix("Bearer ")
        audio = file.file.read()
        said = Listened(key, fields, file.filename, file.content_type, audio)
        self.heard.append(said)
        if self.answers:
            status, body, headers = self.answers.pop(0)
            return web.Response(body=body, status=status, headers=headers)
        told: dict[str, Any] = {"text": self.says}
        if self.usage is not None:
            told["usage"] = self.usage
        return web.json_response(told)
