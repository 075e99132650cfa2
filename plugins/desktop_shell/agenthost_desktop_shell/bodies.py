"""Bodies and answers of the desktop routes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

from .terms import LOCAL, Caller, Mode, ShellCall, Target, host_platform

NO_NULL: JsonDict = {"not": {"type": "null"}}


class _Body(BaseModel):
    # What checks a body is built when the first one comes.
    model_config = ConfigDict(extra="forbid", defer_build=True)

    def given(self, field: str) -> bool:
        """Whether the caller sent the field at all."""
        return field in self.model_fields_set


class Capabilities(_Body):
    """Capabilities in one of the three forms; left out, the served folder's."""

    capabilities: JsonValue = Field(None, json_schema_extra=NO_NULL)
    mode: Mode = Mode.STRICT


class ValidateBody(_Body):
    """What to validate."""

    capabilities: JsonValue = Field(json_schema_extra=NO_NULL)
    mode: Mode = Mode.STRICT


class ResolveBody(Capabilities):
    """What to resolve, and for which platform."""

    platform: Target = Field(default_factory=host_platform)


class CallBody(ResolveBody):
    """Who calls."""

    window: str
    webview: str | None = None
    origin: str = LOCAL

    def caller(self) -> Caller:
        """The caller as decisions know it."""
        return Caller(self.window, self.webview, self.origin)


class DecideBody(CallBody):
    """Which command is called."""

    command: str


class ShellBody(CallBody):
    """Which program is to run, or which link to open."""

    command: Literal["shell:execute", "shell:spawn", "shell:open"] = "shell:execute"
    name: str | None = None
    sidecar: bool = False
    args: list[str] | str = Field(default_factory=list)
    path: str | None = None
    application: str = ""
    resource: str = ""

    def call(self) -> ShellCall:
        """The call as decisions know it."""
        return ShellCall(self.name or "", self.args, self.command, self.sidecar)


class ErrorShape(BaseModel, defer_build=True):
    """One problem of a document."""

    capability: str
    field: str
    value: Any
    message: str


class ValidateAnswer(BaseModel, defer_build=True):
    """Whether a document is valid; ``strict_errors`` says what lenient let pass."""

    valid: bool
    errors: list[ErrorShape]
    strict_errors: list[ErrorShape]


class DecideAnswer(BaseModel, defer_build=True):
    """A decision and what decided it."""

    allowed: bool
    reason: str
    capability: str | None
    permission: str | None


class ShellAnswer(BaseModel, defer_build=True):
    """A decision, and what would be run."""

    allowed: bool
    reason: str
    argv: list[str] | None
