"""The marks of hooks: what a hook is, and what a plugin implements."""

from __future__ import annotations

import pluggy

PROJECT = "agenthost"
API_VERSION = "1"
"""A plugin may name the version it is written for: ``agenthost_api = "1"``."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
