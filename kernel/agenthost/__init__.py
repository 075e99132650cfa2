"""agenthost: a plugin host with one turn engine.

Plugins import from here and from ``agenthost.testing``, nothing else of the kernel.
Names of the running daemon are imported when they are first used, so that a plugin's
import stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .authorize import authorize
from .chat import (
    ChatRequest,
    Completion,
    Delta,
    Finish,
    Image,
    Message,
    Part,
    Reasoning,
    ReasoningChunk,
    Role,
    Text,
    TextChunk,
    ToolDefinition,
    ToolOutput,
    ToolUse,
    Usage,
)
from .clock import Clock, SystemClock, timestamp
from .context import OPERATOR, AgentView, Context, Grants, Principal, PrincipalKind
from .egress import CHECK_HOST, FINAL_URL, EgressPolicy
from .errors import (
    AgentHostError,
    Blocked,
    Cancelled,
    ConfigError,
    Conflict,
    Denied,
    InvalidInput,
    NotFound,
    NotSent,
    OutcomeUnknown,
    PluginError,
    ProviderError,
    ProviderFault,
    QuotaExceeded,
    RateLimited,
    StorageFull,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UpstreamUnreachable,
)
from .files import Files, Workspace
from .plugins.guards import (
    ALLOW,
    AddressCase,
    Allow,
    Deny,
    Guard,
    Guards,
    ManifestCase,
    PathCase,
    Replace,
    RequestCase,
    SecuritySystem,
    SpawnCase,
    ToolCallCase,
    ToolResultCase,
    UrlCase,
    Verdict,
)
from .plugins.hooks import hookimpl
from .plugins.specs import (
    CommandSpec,
    Effect,
    Event,
    SchemaSpec,
    ServiceSpec,
    ToolResult,
    ToolSpec,
)
from .providers import (
    Decoder,
    Dialect,
    DialectSpec,
    Driver,
    Endpoint,
    HttpRequest,
    LongContext,
    ModelCall,
    ModelFacts,
    Probe,
    ProviderFacts,
    ProviderSpec,
    read_error_body,
    transport_faults,
)
from .secrets import Secret
from .suggest import did_you_mean
from .version import __version__
from .web.routes import (
    Answer,
    Call,
    EventStream,
    Reply,
    Route,
    RouteGroup,
    Socket,
    SocketClosed,
    SocketRoute,
)

if TYPE_CHECKING:
    from .agents import Agent, AgentMode
    from .config import load_config
    from .daemon import Daemon
    from .history import estimate_tokens
    from .kv import namespace_of
    from .main import home_folder, run
    from .plugins.loader import Plugins
    from .turns.engine import user_message
    from .turns.events import (
        Done,
        Failed,
        Missed,
        TextDelta,
        Thinking,
        ToolEnd,
        ToolStart,
        TurnEvent,
        TurnResult,
    )
    from .turns.turn import Turn, TurnOptions

_LATER = {
    "Agent": "agents",
    "AgentMode": "agents",
    "load_config": "config",
    "Daemon": "daemon",
    "estimate_tokens": "history",
    "namespace_of": "kv",
    "home_folder": "main",
    "run": "main",
    "Plugins": "plugins.loader",
    "user_message": "turns.engine",
    "Done": "turns.events",
    "Failed": "turns.events",
    "Missed": "turns.events",
    "TextDelta": "turns.events",
    "Thinking": "turns.events",
    "ToolEnd": "turns.events",
    "ToolStart": "turns.events",
    "TurnEvent": "turns.events",
    "TurnResult": "turns.events",
    "Turn": "turns.turn",
    "TurnOptions": "turns.turn",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


__all__ = [
    "ALLOW",
    "CHECK_HOST",
    "FINAL_URL",
    "OPERATOR",
    "AddressCase",
    "Agent",
    "AgentHostError",
    "AgentMode",
    "AgentView",
    "Allow",
    "Answer",
    "Blocked",
    "Call",
    "Cancelled",
    "ChatRequest",
    "Clock",
    "CommandSpec",
    "Completion",
    "ConfigError",
    "Conflict",
    "Context",
    "Daemon",
    "Decoder",
    "Delta",
    "Denied",
    "Deny",
    "Dialect",
    "DialectSpec",
    "Done",
    "Driver",
    "Effect",
    "EgressPolicy",
    "Endpoint",
    "Event",
    "EventStream",
    "Failed",
    "Files",
    "Finish",
    "Grants",
    "Guard",
    "Guards",
    "HttpRequest",
    "Image",
    "InvalidInput",
    "LongContext",
    "ManifestCase",
    "Message",
    "Missed",
    "ModelCall",
    "ModelFacts",
    "NotFound",
    "NotSent",
    "OutcomeUnknown",
    "Part",
    "PathCase",
    "PluginError",
    "Plugins",
    "Principal",
    "PrincipalKind",
    "Probe",
    "ProviderError",
    "ProviderFacts",
    "ProviderFault",
    "ProviderSpec",
    "QuotaExceeded",
    "RateLimited",
    "Reasoning",
    "ReasoningChunk",
    "Replace",
    "Reply",
    "RequestCase",
    "Role",
    "Route",
    "RouteGroup",
    "SchemaSpec",
    "Secret",
    "SecuritySystem",
    "ServiceSpec",
    "Socket",
    "SocketClosed",
    "SocketRoute",
    "SpawnCase",
    "StorageFull",
    "SystemClock",
    "Text",
    "TextChunk",
    "TextDelta",
    "Thinking",
    "TooLarge",
    "ToolCallCase",
    "ToolDefinition",
    "ToolEnd",
    "ToolOutput",
    "ToolResult",
    "ToolResultCase",
    "ToolSpec",
    "ToolStart",
    "ToolUse",
    "Turn",
    "TurnEvent",
    "TurnOptions",
    "TurnResult",
    "Unauthenticated",
    "Unavailable",
    "UpstreamUnreachable",
    "UrlCase",
    "Usage",
    "Verdict",
    "Workspace",
    "__version__",
    "authorize",
    "did_you_mean",
    "estimate_tokens",
    "home_folder",
    "hookimpl",
    "load_config",
    "namespace_of",
    "read_error_body",
    "run",
    "timestamp",
    "transport_faults",
    "user_message",
]
