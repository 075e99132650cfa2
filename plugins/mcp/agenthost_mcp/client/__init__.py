"""MCP servers as sources of tools: their connections, their pins, who may see them."""
