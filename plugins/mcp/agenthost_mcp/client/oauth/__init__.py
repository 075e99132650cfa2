"""Logins at servers that want a token (MCP authorization of 2025-11-25, 2026-07-28)."""
