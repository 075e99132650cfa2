"""What a manifest says of commands: a right like others, passed on like others."""

from __future__ import annotations

from agenthost import ManifestTable
from agenthost_toml.types import Names, Table
from pydantic import Field


class Commands(Table):
    """Commands that an agent may run."""

    shell: Names = Field(
        (),
        description="Programs that it may run, as `git`, or commands, as `git log *`; "
        "`*` is all of them.",
    )


COMMANDS = ManifestTable("capabilities", Commands)
