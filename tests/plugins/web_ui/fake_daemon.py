"""A small daemon with scripted agents: the interface of the page, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from agenthost import OPERATOR, Call, NotFound, Reply, Route
from agenthost_front.headers import POLICY
from agenthost_web_ui.routes import page_routes
from agenthost_web_ui.static_files import load_files
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart, Response, request, websocket

from .fake_line import Line
from .fake_turns import FakeAgent
from .scripted_agent import Frame

TOOLS = [
    "agent_call",
    "agent_find",
    "agent_kill",
    "agent_list",
    "agent_spawn",
    "calculate",
    "document_read",
    "event_publish",
    "file_list",
    "file_read",
    "file_write",
    "image_analyze",
    "kv_get",
    "kv_set",
    "schedule_create",
    "schedule_delete",
    "schedule_list",
    "shell_exec",
    "system_time",
    "task_claim",
    "task_complete",
    "task_list",
    "task_post",
    "web_fetch",
    "web_search",
]
MODELS = [
    {"id": "dear-1", "provider": "aardvark", "display_name": "Dear One"},
    {"id": "small-1", "provider": "acme", "display_name": "Small One"},
    {"id": "big-1", "provider": "acme", "display_name": "Big One"},
    {"id": "offline-1", "provider": "offline", "display_name": "Offline"},
]
PROVIDERS = [
    {
        "name": "aardvark",
        "display_name": "Aardvark",
        "auth_status": "missing",
        "env_var": "AARDVARK_API_KEY",
    },
    {"name": "acme", "display_name": "Acme", "auth_status": "configured"},
    {"name": "offline", "display_name": "Offline", "auth_status": "no_key_needed"},
]
COMMANDS = [
    {"name": "compact", "argument": "", "help": "Summarise older messages"},
    {"name": "dice", "argument": "<sides>", "help": "Throw a die"},
    {"name": "new", "argument": "", "help": "Begin anew"},
    {"name": "stop", "argument": "", "help": "Stop the running turn"},
]
Json = Any


class FakeDaemon:
    """State of the fake.

    ``key`` guards the interface, ``down`` answers 503, ``deaf`` loses messages on
    their way, ``gate`` holds WebSockets back, ``heard`` is what they brought.
    """

    def __init__(self) -> None:
        self.base_url = ""
        self.key = ""
        self.down = False
        self.deaf = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.tools = TOOLS
        self.warnings: list[str] = []
        self.cards: dict[str, Json] = {}
        self.heard: list[Frame] = []
        self.agents: dict[str, FakeAgent] = {}
        self.manifests: list[str] = []
        self.tickets: set[str] = set()
        self.sockets: set[asyncio.Task[None]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    def spawn(self, manifest_toml: str) -> FakeAgent:
        """Create an agent."""
        agent = FakeAgent(str(uuid4()), tomllib.loads(manifest_toml))
        self.manifests.append(manifest_toml)
        self.agents[agent.id] = agent
        return agent

    def from_test(self, act: Callable[[], object]) -> None:
        """Do something on the daemon's own loop."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(act)

    def hang_up(self) -> None:
        """Drop every WebSocket."""
        for task in self.sockets:
            task.cancel()


def build_app(daemon: FakeDaemon) -> Quart:
    """The Quart application of the fake."""
    app = Quart(__name__, static_folder=None)
    _mount_page(app)
    _mount_agents(app, daemon)
    _mount_catalogue(app, daemon)

    @app.before_request
    async def access() -> Json:
        if not request.path.startswith("/api/"):
            return None
        if daemon.down:
            return {"error": "draining"}, 503
        if (
            daemon.key
            and request.headers.get("Authorization") != f"Bearer {daemon.key}"
        ):
            return {"error": "missing or invalid API key"}, 401
        return None

    @app.after_request
    async def headers(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    @app.post("/api/ws-ticket")
    async def ticket() -> Json:
        daemon.tickets.add(value := uuid4().hex)
        return {"ticket": value, "expires_in": 30}

    @app.websocket("/api/agents/<agent_id>/ws")
    async def line(agent_id: str) -> Json:
        if daemon.key and websocket.args.get("ticket") not in daemon.tickets:
            return {"error": "missing or invalid API key"}, 401
        if agent_id not in daemon.agents:
            return {"error": "agent not found"}, 404
        task = asyncio.ensure_future(Line(daemon, daemon.agents[agent_id]).serve())
        daemon.sockets.add(task)
        try:
            await task
        finally:
            daemon.sockets.discard(task)

    return app


def _mount_page(app: Quart) -> None:
    for route in page_routes(load_files).routes:
        app.add_url_rule(route.path, route.handler.__name__, _view(route))


def _view(route: Route) -> Callable[..., Any]:
    async def view(**parameters: str) -> Response:
        call = Call(
            host=None,  # type: ignore[arg-type]  # the page's routes ask nothing of it
            principal=OPERATOR,
            client="127.0.0.1",
            request_id="",
            query={},
            headers={name.lower(): value for name, value in request.headers.items()},
        )
        try:
            reply = await route.handler(call, **parameters)
        except NotFound as error:
            return Response(error.message, 404)
        assert isinstance(reply, Reply)
        return Response(reply.body, reply.status, dict(reply.headers))

    return view


def _mount_agents(app: Quart, daemon: FakeDaemon) -> None:
    @app.get("/api/agents")
    async def agents() -> Json:
        return [agent.summary for agent in daemon.agents.values()]

    @app.post("/api/agents")
    async def create() -> Json:
        body = await request.get_json()
        if any(a.manifest["name"] == "taken" for a in daemon.agents.values()):
            return {"error": "name: an agent named 'taken' exists already"}, 409
        agent = daemon.spawn(body["manifest_toml"])
        created = {"agent_id": agent.id, "name": agent.manifest["name"]}
        return {**created, "warnings": daemon.warnings}, 201

    @app.get("/api/agents/<agent_id>")
    async def agent(agent_id: str) -> Json:
        if agent_id not in daemon.agents:
            return {"error": f"agent not found: {agent_id}"}, 404
        found = daemon.agents[agent_id]
        wanted = {"description": "", "capabilities": {}, **found.manifest}
        return {**wanted, **found.summary}

    @app.delete("/api/agents/<agent_id>")
    async def kill(agent_id: str) -> Json:
        del daemon.agents[agent_id]
        return {"status": "killed", "agent_id": agent_id}

    @app.get("/api/agents/<agent_id>/session")
    async def session(agent_id: str) -> Json:
        messages = daemon.agents[agent_id].messages
        return {
            "session_id": agent_id,
            "agent_id": agent_id,
            "message_count": len(messages),
            "context_window_tokens": 0,
            "messages": messages,
        }

    @app.post("/api/agents/<agent_id>/stop")
    async def stop(agent_id: str) -> Json:
        daemon.agents[agent_id].signals.stop.set()
        return {"status": "stopped", "message": "stopped"}


def _mount_catalogue(app: Quart, daemon: FakeDaemon) -> None:
    @app.get("/api/tools")
    async def tools() -> Json:
        return {"tools": daemon.tools, "total": len(daemon.tools)}

    @app.get("/api/status")
    async def status() -> Json:
        return {"default_provider": "offline", "default_model": "offline-1"}

    @app.get("/api/models")
    async def models() -> Json:
        return {"models": MODELS, "total": len(MODELS)}

    @app.get("/api/commands")
    async def commands() -> Json:
        return {"commands": COMMANDS}

    @app.get("/api/cards")
    async def cards() -> Json:
        listed = [
            {"name": name, "title": name.title(), "path": f"/api/cards/{name}"}
            for name in daemon.cards
        ]
        return {"cards": listed}

    @app.get("/api/cards/<name>")
    async def card(name: str) -> Json:
        return daemon.cards[name]

    @app.get("/api/providers")
    async def providers() -> Json:
        return {"providers": PROVIDERS, "total": len(PROVIDERS)}


@contextmanager
def running(daemon: FakeDaemon) -> Iterator[FakeDaemon]:
    """Serve the fake on a free loopback port in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    daemon.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.graceful_timeout = 0.2
    config.loglevel = "CRITICAL"
    ready, ended = threading.Event(), asyncio.Event()

    async def main() -> None:
        daemon.loop = asyncio.get_running_loop()
        ready.set()
        await serve(build_app(daemon), config, shutdown_trigger=ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    ready.wait()
    try:
        yield daemon
    finally:
        daemon.from_test(daemon.hang_up)
        daemon.from_test(ended.set)
        thread.join()
