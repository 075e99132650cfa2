"""The daemon itself: health, status, version, configuration, tools, shutdown."""

from __future__ import annotations

import platform
from dataclasses import asdict

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    Host,
    RouteGroup,
    ServiceSpec,
    ToolSource,
)

from .agents import summary
from .health import health_of
from .system_shapes import (
    ConfigView,
    DaemonStatus,
    Health,
    HealthDetail,
    ShuttingDown,
    Ticket,
    ToolList,
    Version,
)

routes = RouteGroup("system")


@routes.get(
    "/api/health", scope="health:read", cost=1, public=True, answer=Health, direct=True
)
async def health(call: Call) -> Answer:
    """Tell whether the daemon works; public, and says nothing else."""
    return health_of(call.host)


@routes.get(
    "/api/health/detail", scope="system:read", cost=1, answer=HealthDetail, direct=True
)
async def health_detail(call: Call) -> Answer:
    """Tell how the store, the configuration and each plugin stand."""
    host = call.host
    reachable = await host.store.probe()
    accounts = host.plugins.charges.accounts
    return {
        **health_of(host),
        "version": host.version,
        "agent_count": len(host.agents),
        "database": "connected" if reachable else "error",
        "config_warnings": host.warnings,
        "interrupted_turns": host.interrupted_turns,
        "listeners": [asdict(listener) for listener in host.events.states()],
        "plugin_time": {
            key: asdict(account) for key, account in sorted(accounts.items())
        },
        "plugins": [
            {
                "key": state.key,
                "distribution": state.distribution,
                "version": state.version,
                "status": state.status,
                "reason": state.reason,
            }
            for state in host.plugins.states()
        ],
        "closed_guards": dict(host.guards.closed),
        "slow_writes": [
            {
                "name": slow.name,
                "count": slow.count,
                "longest_ms": int(slow.longest * 1_000),
            }
            for slow in host.store.slow
        ],
    }


def _default_model(host: Host) -> tuple[str, str]:
    """Name the default model; one whose provider was left out as it is configured."""
    try:
        return host.models.names_of_default()
    except AgentHostError:
        chosen = host.config.default_model
        return chosen.provider or "", chosen.model or ""


@routes.get(
    "/api/status", scope="system:read", cost=1, answer=DaemonStatus, direct=True
)
async def status(call: Call) -> Answer:
    """Show the daemon and its agents."""
    host = call.host
    provider, model = _default_model(host)
    return {
        "status": "running",
        "version": host.version,
        "agent_count": len(host.agents),
        "data_dir": str(host.data_dir),
        "default_provider": provider,
        "default_model": model,
        "uptime_seconds": host.uptime,
        "listen_addr": host.address,
        "agents": [summary(host, agent) for agent in host.agents.list()],
    }


@routes.get("/api/version", scope="system:read", cost=1, answer=Version, direct=True)
async def version(call: Call) -> Answer:
    """Show the version and what it runs on."""
    return {
        "name": "agenthost",
        "version": call.host.version,
        "build_date": "n/a",
        "git_sha": "n/a",
        "rust_version": "n/a",
        "python_version": platform.python_version(),
        "platform": {"Darwin": "macos"}.get(
            platform.system(), platform.system().lower()
        ),
        "arch": platform.machine(),
    }


@routes.get("/api/config", scope="system:read", cost=2, answer=ConfigView, direct=True)
async def config(call: Call) -> Answer:
    """Show the configuration in force, without its secrets."""
    host = call.host
    provider, model = _default_model(host)
    return {
        "data_dir": str(host.data_dir),
        "default_provider": provider,
        "default_model": model,
        "listen_addr": host.config.listen_addr,
        "api_key_set": host.config.api_key is not None,
        # The service that connects them tells; without one there are none.
        "channels_configured": sum(
            getattr(service, "channels_configured", 0)
            for _, service in host.registry.offered(ServiceSpec)
        ),
        "mcp_servers": sum(
            source.servers for _, source in host.registry.offered(ToolSource)
        ),
    }


@routes.get("/api/tools", scope="system:read", cost=1, answer=ToolList, direct=True)
async def list_tools(call: Call) -> Answer:
    """List every tool that is there now, with its description and arguments."""
    named = call.host.toolbox.tools.items()
    tools = [t.definition for name, t in sorted(named) if name == t.definition.name]
    return {
        "tools": [tool.name for tool in tools],
        "total": len(tools),
        "definitions": [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": dict(tool.parameters),
            }
            for tool in tools
        ],
    }


@routes.post("/api/ws-ticket", scope="agents:message", answer=Ticket, direct=True)
async def ws_ticket(call: Call) -> Answer:
    """Exchange the key for a short-lived ticket that opens one WebSocket."""
    access = call.host.access
    return {
        "ticket": access.ticket(call.principal),
        "expires_in": int(access.ticket_seconds),
    }


@routes.post("/api/shutdown", scope="system:admin", answer=ShuttingDown, direct=True)
async def shutdown(call: Call) -> Answer:
    """Shut the daemon down; running turns are ended or kept first."""
    call.host.request_stop()
    return {"status": "shutting_down", "running_turns": call.host.turns.running}
