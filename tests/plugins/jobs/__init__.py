"""Durable work that happens once."""
