"""Triggers: an agent is told when something happens."""
