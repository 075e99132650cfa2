"""The test harness for plugin authors: running daemons, a scripted model, contracts."""

from .clock import ManualClock
from .scripted import Pause, ScriptedModel

__all__ = ["ManualClock", "Pause", "ScriptedModel"]
