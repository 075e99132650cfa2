"""The native REST, SSE and WebSocket surface of agenthost."""
