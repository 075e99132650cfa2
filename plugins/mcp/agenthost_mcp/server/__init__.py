"""This daemon as an MCP server: ``/mcp``."""
