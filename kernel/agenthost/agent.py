"""An agent: what it is, and where it stands."""

from __future__ import annotations

from enum import StrEnum

from agenthost_values.value_class import value_class

from .errors import Conflict
from .manifest_model import Manifest


class AgentState(StrEnum):
    """Where an agent stands."""

    CREATED = "Created"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    CRASHED = "Crashed"
    TERMINATED = "Terminated"


class AgentMode(StrEnum):
    """STABLE pins the model the agent has at that moment."""

    NORMAL = "Normal"
    STABLE = "Stable"


@value_class
class Agent:
    """An agent as it stands; a change makes a new one.

    ``parent`` is the id of the agent that has spawned it, "" of one that people made;
    ``reason`` says why it is suspended or crashed; ``crashes`` are the moments at which
    it crashed of late, the last one last.
    """

    id: str
    name: str
    state: AgentState
    mode: AgentMode
    session_id: str
    manifest: Manifest
    pinned_model: tuple[str, str] | None
    created_at: float
    updated_at: float
    parent: str = ""
    reason: str = ""
    crashes: tuple[float, ...] = ()

    def check_accepts_messages(self) -> None:
        """Refuse a message to an agent that is not there to answer.

        Raises:
            Conflict: It is suspended, crashed or terminated.
        """
        if self.state not in {AgentState.CREATED, AgentState.RUNNING}:
            raise Conflict(f"agent {self.name!r} is {self.state}; it takes no messages")
