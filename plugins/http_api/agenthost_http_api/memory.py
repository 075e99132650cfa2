"""Memory: the key-value pairs of an agent, the same that kv_get and kv_set use."""

from __future__ import annotations

from uuid import UUID

from agenthost import Answer, Call, RouteGroup, namespace_of

from .memory_shapes import MemorySearched, SearchMemory
from .shapes import KVList, KVPair, PairChanged, SetValue

routes = RouteGroup("memory")

VALUE_BODY = 3 * 1024 * 1024

# A key may be any text. The routes that have it in their path are direct: Quart finds
# none whose last part begins with a slash or holds a line's end.


def _namespace(call: Call, agent_id: UUID, key: str) -> str:
    return namespace_of(call.host.agents.get(str(agent_id)).id, key)


@routes.get("/api/memory/agents/<agent_id>/kv", scope="memory:read", answer=KVList)
async def list_pairs(call: Call, agent_id: UUID) -> Answer:
    """List an agent's own pairs, sorted by key."""
    agent = call.host.agents.get(str(agent_id))
    pairs = await call.host.kv.items(agent.id)
    return {"kv_pairs": [{"key": key, "value": value} for key, value in pairs]}


@routes.get(
    "/api/memory/search",
    scope="memory:read",
    query=SearchMemory,
    answer=MemorySearched,
)
async def search_memory(call: Call, query: SearchMemory) -> Answer:
    """Search an agent's memory and conversations; a named key finds its own."""
    agent, who = call.host.agents.find(query.agent), call.context.principal
    owner = "" if who.grants is None else call.context.owner
    return {"results": await call.host.kv.search(owner, agent.id, query.q)}


@routes.get(
    "/api/memory/agents/<agent_id>/kv/<path:key>",
    scope="memory:read",
    answer=KVPair,
    direct=True,
)
async def get_pair(call: Call, agent_id: UUID, key: str) -> Answer:
    """Read one value; keys may contain slashes."""
    value, _ = await call.host.kv.get(_namespace(call, agent_id, key), key)
    return {"key": key, "value": value}


@routes.put(
    "/api/memory/agents/<agent_id>/kv/<path:key>",
    scope="memory:write",
    body=SetValue,
    answer=PairChanged,
    body_limit=VALUE_BODY,
    direct=True,
)
async def set_pair(call: Call, agent_id: UUID, key: str, body: SetValue) -> Answer:
    """Create or overwrite a value."""
    namespace = _namespace(call, agent_id, key)
    await call.host.kv.set(call.context, namespace, key, body.value)
    return {"status": "stored", "key": key}


@routes.delete(
    "/api/memory/agents/<agent_id>/kv/<path:key>",
    scope="memory:write",
    answer=PairChanged,
    direct=True,
)
async def delete_pair(call: Call, agent_id: UUID, key: str) -> Answer:
    """Delete a value."""
    namespace = _namespace(call, agent_id, key)
    await call.host.kv.delete(call.context, namespace, key)
    return {"status": "deleted", "key": key}
