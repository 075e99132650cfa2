"""Replicate's predictions from the server's side: several addresses, one script.

Source: Replicate HTTP API reference, "Predictions" and "Streaming output".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenthost_chat.chat import ModelSettings, Usage

from .script import Heard, Reply, Turn, pieces
from .server import JSON, ProviderSimulator

EVENTS = {"Content-Type": "text/event-stream"}
HEAD = {"id": "p1", "model": "simulated", "version": "hidden", "input": {}}


@dataclass(frozen=True, slots=True)
class ReplicateWire:
    """Predictions of models that take a prompt."""

    base: str = "/v1"
    path: str = "/v1/models/*/*/predictions"
    content_type: str = "text/event-stream"

    def hear(self, headers: Mapping[str, str], raw: bytes) -> Heard:
        """Read a request to create a prediction."""
        body = json.loads(raw)
        bearer = headers.get("authorization", "")
        _, _, _, owner, name, _ = headers[":path"].split("/")
        return Heard(
            path=headers[":path"],
            key=bearer.removeprefix("Bearer ") or None,
            raw=raw,
            body=body,
            model=f"{owner}/{name}",
            stream=body.get("stream", False),
            system=body["input"].get("system_prompt", ""),
            said=(body["input"]["prompt"],),
            transcript=(("user", body["input"]["prompt"]),),
            max_tokens=body["input"].get("max_tokens"),
            temperature=body["input"].get("temperature"),
            settings=_settings(body),
        )

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write the events of the output."""
        said = [_event("output", piece) for piece in pieces(_output(turn))]
        return [*said, _event("done", "{}")]

    def whole(self, turn: Turn) -> bytes:
        """Write a finished prediction."""
        return json.dumps(finished(turn)).encode()

    def refusal(self, status: int, words: str) -> bytes:
        """Write an error body."""
        return json.dumps({"title": "x", "detail": words, "status": status}).encode()

    def failure(self, words: str) -> bytes:
        """Write an error event."""
        return _event("error", json.dumps({"detail": words}))

    def garbage(self) -> bytes:
        """Write an end that is not JSON."""
        return _event("done", '{"reason": ')

    def told(self, usage: Usage) -> Usage:
        """Keep what the wire can say: two counts."""
        return Usage(usage.input_tokens, usage.output_tokens)


class ReplicateSimulator(ProviderSimulator):
    """Creates predictions; a streamed scene is told at the stream's address.

    ``waits`` is how often a prediction is still at work when it is asked about,
    ``cancelled`` how many were cancelled.
    """

    def __init__(self, wire: ReplicateWire, waits: int = 0) -> None:
        super().__init__(wire)
        self.waits = waits
        self.cancelled = 0
        self._scene: Turn | Reply = Reply()

    def reply(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer at each of a prediction's addresses."""
        if path == "/v1/predictions/p1/stream":
            return self._told()
        if path == "/v1/predictions/p1/cancel":
            self.cancelled += 1
            return self._answer_with({**self.begun(), "status": "canceled"})
        if path == "/v1/predictions/p1":
            return self._asked()
        return super().reply(path, headers, body)

    def next_scene(self) -> Turn | Reply:
        """Keep the scene for the other addresses; errors come at once."""
        self._scene = super().next_scene()
        refused = isinstance(self._scene, Reply) and self._scene.status >= 400
        if refused or (not self.heard[-1].stream and not self.waits):
            return self._scene
        return self._answer_with(self.begun())

    def begun(self) -> dict[str, Any]:
        """Write a prediction that is still at work."""
        here = f"{self.base_url}/predictions/p1"
        urls = {"get": here, "cancel": f"{here}/cancel", "stream": f"{here}/stream"}
        return {**HEAD, "status": "processing", "output": None, "urls": urls}

    def _told(self) -> Reply:
        if isinstance(self._scene, Reply):
            return self._scene
        return Reply(tuple(self.wire.events(self._scene)), headers=EVENTS)

    def _asked(self) -> Reply:
        if self.waits:
            self.waits -= 1
            return self._answer_with(self.begun())
        scene = self._scene if isinstance(self._scene, Turn) else Turn()
        return self._answer_with(finished(scene))

    def _answer_with(self, prediction: Mapping[str, Any]) -> Reply:
        return Reply((json.dumps(prediction).encode(),), 200, JSON)


def finished(turn: Turn) -> dict[str, Any]:
    """Write a prediction that succeeded."""
    counts = {
        "input_token_count": turn.usage.input_tokens,
        "output_token_count": turn.usage.output_tokens,
    }
    output = pieces(_output(turn))
    return {**HEAD, "status": "succeeded", "output": output, "metrics": counts}


def _settings(body: Mapping[str, Any]) -> ModelSettings:
    return ModelSettings(top_p=body["input"].get("top_p"))


def _output(turn: Turn) -> str:
    """Think aloud where the models there do: in front, between tags."""
    thought = f"<think>{turn.reasoning}</think>" if turn.reasoning else ""
    return thought + turn.text


def _event(name: str, data: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in data.split("\n"))
    return f"event: {name}\n{lines}\n".encode()
