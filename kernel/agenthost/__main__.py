"""``python -m agenthost``: run a daemon in the foreground."""

from .main import run

raise SystemExit(run())
