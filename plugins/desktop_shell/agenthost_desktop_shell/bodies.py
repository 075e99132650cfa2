"""Bodies and answers of the desktop routes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue
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


class ShellArguments(_Body):
    """Which program is to run, or which link to open."""

    name: str | None = None
    sidecar: bool = False
    args: list[str] | str = Field(default_factory=list)
    path: str | None = None

    def call(self, command: str) -> ShellCall:
        """The call as decisions know it."""
        return ShellCall(self.name or "", self.args, command, self.sidecar)


class ShellBody(CallBody, ShellArguments):
    """Who runs it, and where."""

    command: Literal["shell:execute", "shell:spawn", "shell:open"] = "shell:execute"
    application: str = ""
    resource: str = ""


class ErrorShape(BaseModel, defer_build=True):
    """One problem of a document."""

    capability: str
    field: str
    value: Any
    message: str


class LintShape(ErrorShape):
    """Something valid that is most likely not meant."""

    rule: str
    severity: str


class ValidateAnswer(BaseModel, defer_build=True):
    """Whether a document is valid; ``strict_errors`` says what lenient let pass.

    ``warnings`` are those of ``agenthost capability check``.
    """

    valid: bool
    errors: list[ErrorShape]
    strict_errors: list[ErrorShape]
    warnings: list[LintShape]


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


class DecisionsQuery(BaseModel, defer_build=True):
    """Which recorded decisions are listed."""

    since: AwareDatetime | None = None
    limit: int = Field(1000, ge=1, le=10_000)


class DecisionShape(BaseModel, defer_build=True):
    """A decision of the bridge, and how often it was made."""

    window: str
    webview: str | None
    origin: str
    platform: str
    command: str
    program: str
    allowed: bool
    permission: str | None
    capability: str | None
    count: int
    first_at: str
    last_at: str
    owner: str


class DecisionsAnswer(BaseModel, defer_build=True):
    """What was recorded, the latest first."""

    decisions: list[DecisionShape]
    total: int
