"""Whether commands run, and how: the operator's word, then the agent's manifest."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from agenthost import ManifestTable
from agenthost_toml.types import Names, Positive, Table
from pydantic import BeforeValidator, Field

Mode = Literal["deny", "allowlist", "full"]
Seconds = Annotated[float, Field(gt=0, le=3_000)]


class ShellSection(Table):
    """``[shell]``: commands of agents. Nothing confines them but the limits here."""

    read_at_use: ClassVar = True

    mode: Mode = Field(
        "deny",
        description="The most that an agent may: `deny` is no commands at all, "
        "`allowlist` programs that its manifest names, without a shell, `full` a shell "
        "for agents whose manifest says so. There is no sandbox: a command reads and "
        "writes what the daemon's user can.",
    )
    path: str = Field(
        "/usr/local/bin:/usr/bin:/bin", description="Where programs are looked for."
    )
    environment: Names = Field(
        (), description="Variables of the daemon that commands get besides."
    )
    timeout_secs: Seconds = Field(
        30.0, description="Seconds after which a command is killed with all it started."
    )
    max_output_bytes: Annotated[int, Field(ge=1, le=1024 * 1024)] = Field(
        50_000, description="Bytes of each of the two outputs that are kept."
    )
    max_memory_bytes: Positive = Field(
        1024**3, description="Memory of each process of a command."
    )
    max_file_bytes: Positive = Field(
        100 * 1024 * 1024, description="The largest file that a command may write."
    )
    max_cpu_secs: Positive = Field(
        60, description="Processor time of each process of a command."
    )


class HowCommandsRun(Table):
    """``[exec_policy]``: how an agent runs commands."""

    mode: Mode = Field("allowlist", description="What `exec_policy` says as a word.")


def _spelled_out(value: object) -> object:
    return {"mode": value} if isinstance(value, str) else value


class ExecPolicy(Table):
    """Which commands an agent may run."""

    exec_policy: Annotated[HowCommandsRun, BeforeValidator(_spelled_out)] = Field(
        default_factory=HowCommandsRun.model_construct,
        description="Which commands it may run: `deny`, `allowlist` (programs of "
        "`capabilities.shell`) or `full` (a shell, if `[shell] mode` lets it and "
        '`capabilities.shell` is `["*"]`); also as a table with `mode`.',
    )


EXEC_POLICY = ManifestTable("", ExecPolicy)
