"""Bluesky on a loopback port."""

from .host import PASSWORD, BlueskySimulator

__all__ = ["PASSWORD", "BlueskySimulator"]
