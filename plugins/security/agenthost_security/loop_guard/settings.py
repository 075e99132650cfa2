"""What the loop guard reads of the configuration and of manifests."""

from __future__ import annotations

from typing import Annotated

from agenthost import ManifestTable
from agenthost_toml.types import Table
from pydantic import Field

Pattern = Annotated[str, Field(min_length=1, max_length=64)]
POLLING = ("*status*", "*poll*", "*wait*", "*progress*", "*watch*", "*sleep*")


class LoopGuardSection(Table):
    """``[loop_guard]``: when a turn that does the same again is warned and stopped."""

    warn_at: Annotated[int, Field(ge=2, le=100)] = Field(
        3, description="The model is warned at so many equal calls with equal results."
    )
    stop_at: Annotated[int, Field(ge=3, le=100)] = Field(
        5, description="The call that is refused: the fifth of a kind by default."
    )
    max_agent_calls: Annotated[int, Field(ge=1, le=10_000)] = Field(
        64,
        description="Calls of other agents that a turn, with all the turns that it "
        "causes, may make.",
    )
    polling: Annotated[tuple[Pattern, ...], Field(max_length=32, strict=False)] = Field(
        POLLING,
        description="Tools that may repeat three times as often, and without end when "
        "a call waits as long as it was told; `*` stands for any letters.",
    )


LOOPS = ManifestTable("loop_guard", LoopGuardSection)
