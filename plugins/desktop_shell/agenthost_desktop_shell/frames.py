"""What a shell asks a token for, and what webviews send over the bridge."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from .bodies import ShellArguments
from .terms import LOCAL, Target, host_platform


class IssueBody(BaseModel):
    """The webview that a token is for."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    window: str = Field(min_length=1)
    webview: str | None = None
    origin: str = LOCAL
    platform: Target = Field(default_factory=host_platform)
    application: str = ""
    resource: str = ""
    expires_in: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="Seconds until the token ends."
    )
    until_closed: bool = Field(
        default=False, description="Whether it ends when a socket that uses it closes."
    )


class Hello(BaseModel):
    """The first frame."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    token: str


class Invocation(BaseModel):
    """A command that a webview invokes; of the shell's, ``args`` says which program."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    id: str | int
    command: str
    args: dict[str, Any] = Field(default_factory=dict)


class WireOptions(BaseModel):
    """What the wire has in ``options``; all but ``sidecar`` is the shell's affair."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    sidecar: bool = False
    cwd: str | None = None
    env: dict[str, str] | None = None
    encoding: str | None = None


class WireArguments(ShellArguments):
    """What ``args`` holds for ``shell:execute``, ``shell:spawn`` and ``shell:open``.

    ``program``, ``options``, ``onEvent`` and ``with`` are the wire's own.
    """

    name: str | None = Field(None, validation_alias=AliasChoices("name", "program"))
    options: WireOptions = Field(default_factory=WireOptions)
    on_event: Any = Field(None, validation_alias="onEvent")
    with_: str | None = Field(None, validation_alias="with")
