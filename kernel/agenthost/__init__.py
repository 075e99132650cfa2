"""agenthost: a plugin host with one turn engine.

Plugins import from here and from ``agenthost.testing``, nothing else of the kernel.
Names of the running daemon are imported when they are first used, so that a plugin's
import stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agenthost_chat.chat import ChatRequest as ChatRequest
from agenthost_chat.chat import Completion as Completion
from agenthost_chat.chat import Delta as Delta
from agenthost_chat.chat import Finish as Finish
from agenthost_chat.chat import Image as Image
from agenthost_chat.chat import Json as Json
from agenthost_chat.chat import Message as Message
from agenthost_chat.chat import Part as Part
from agenthost_chat.chat import Reasoning as Reasoning
from agenthost_chat.chat import ReasoningChunk as ReasoningChunk
from agenthost_chat.chat import Role as Role
from agenthost_chat.chat import Text as Text
from agenthost_chat.chat import TextChunk as TextChunk
from agenthost_chat.chat import ToolDefinition as ToolDefinition
from agenthost_chat.chat import ToolOutput as ToolOutput
from agenthost_chat.chat import ToolUse as ToolUse
from agenthost_chat.chat import Usage as Usage
from agenthost_chat.history import estimate_tokens as estimate_tokens
from agenthost_toml.suggest import did_you_mean as did_you_mean

from .authorize import authorize as authorize
from .clock import Clock as Clock
from .clock import SystemClock as SystemClock
from .clock import timestamp as timestamp
from .context import OPERATOR as OPERATOR
from .context import AgentView as AgentView
from .context import Context as Context
from .context import Grants as Grants
from .context import Principal as Principal
from .context import PrincipalKind as PrincipalKind
from .errors import AgentHostError as AgentHostError
from .errors import Blocked as Blocked
from .errors import Cancelled as Cancelled
from .errors import ConfigError as ConfigError
from .errors import Conflict as Conflict
from .errors import Denied as Denied
from .errors import InvalidInput as InvalidInput
from .errors import NotFound as NotFound
from .errors import NotSent as NotSent
from .errors import OutcomeUnknown as OutcomeUnknown
from .errors import PluginError as PluginError
from .errors import ProviderError as ProviderError
from .errors import ProviderFault as ProviderFault
from .errors import QuotaExceeded as QuotaExceeded
from .errors import RateLimited as RateLimited
from .errors import SchemaFailed as SchemaFailed
from .errors import StorageFull as StorageFull
from .errors import Superseded as Superseded
from .errors import TooLarge as TooLarge
from .errors import Unauthenticated as Unauthenticated
from .errors import Unavailable as Unavailable
from .errors import UpstreamUnreachable as UpstreamUnreachable
from .job_port import Job as Job
from .job_port import JobHandler as JobHandler
from .job_port import Jobs as Jobs
from .job_port import JobState as JobState
from .job_port import RunningJob as RunningJob
from .model_port import Answered as Answered
from .model_port import Attempt as Attempt
from .model_port import Models as Models
from .model_port import Payer as Payer
from .model_port import Pool as Pool
from .model_port import Target as Target
from .observe import Activity as Activity
from .observe import Observer as Observer
from .plugins.calls import describe as describe
from .plugins.discovery import find_plugins as find_plugins
from .plugins.guards import ALLOW as ALLOW
from .plugins.guards import AddressCase as AddressCase
from .plugins.guards import Allow as Allow
from .plugins.guards import Deny as Deny
from .plugins.guards import Guard as Guard
from .plugins.guards import Guards as Guards
from .plugins.guards import ManifestCase as ManifestCase
from .plugins.guards import PathCase as PathCase
from .plugins.guards import Replace as Replace
from .plugins.guards import RequestCase as RequestCase
from .plugins.guards import SecuritySystem as SecuritySystem
from .plugins.guards import SpawnCase as SpawnCase
from .plugins.guards import ToolCallCase as ToolCallCase
from .plugins.guards import ToolResultCase as ToolResultCase
from .plugins.guards import UrlCase as UrlCase
from .plugins.guards import Verdict as Verdict
from .plugins.hooks import hookimpl as hookimpl
from .plugins.specs import CommandSpec as CommandSpec
from .plugins.specs import Effect as Effect
from .plugins.specs import Event as Event
from .plugins.specs import SchemaSpec as SchemaSpec
from .plugins.specs import ServiceSpec as ServiceSpec
from .plugins.specs import ToolResult as ToolResult
from .plugins.specs import ToolSpec as ToolSpec
from .ports import CHECK_HOST as CHECK_HOST
from .ports import FINAL_URL as FINAL_URL
from .ports import BackendSpec as BackendSpec
from .ports import Compaction as Compaction
from .ports import Condensed as Condensed
from .ports import Egress as Egress
from .ports import EgressPolicy as EgressPolicy
from .ports import Events as Events
from .ports import Files as Files
from .ports import Front as Front
from .ports import ListenerState as ListenerState
from .ports import Port as Port
from .ports import Row as Row
from .ports import Store as Store
from .ports import Vault as Vault
from .ports import Workspace as Workspace
from .providers import Decoder as Decoder
from .providers import Dialect as Dialect
from .providers import DialectSpec as DialectSpec
from .providers import Driver as Driver
from .providers import Endpoint as Endpoint
from .providers import HttpRequest as HttpRequest
from .providers import LongContext as LongContext
from .providers import ModelCall as ModelCall
from .providers import ModelFacts as ModelFacts
from .providers import Probe as Probe
from .providers import ProviderFacts as ProviderFacts
from .providers import ProviderSpec as ProviderSpec
from .providers import open_stream as open_stream
from .providers import read_error_body as read_error_body
from .providers import transport_faults as transport_faults
from .record_port import AgentRows as AgentRows
from .record_port import Journal as Journal
from .record_port import Ledger as Ledger
from .record_port import Memory as Memory
from .record_port import ModelTotal as ModelTotal
from .record_port import PeriodTotal as PeriodTotal
from .record_port import Records as Records
from .record_port import Session as Session
from .record_port import SessionItem as SessionItem
from .record_port import Sessions as Sessions
from .record_port import Slot as Slot
from .record_port import Spent as Spent
from .record_port import Step as Step
from .record_port import Total as Total
from .record_port import TurnRecord as TurnRecord
from .record_port import TurnState as TurnState
from .record_port import namespace_of as namespace_of
from .routes import Answer as Answer
from .routes import Call as Call
from .routes import EventStream as EventStream
from .routes import Reply as Reply
from .routes import Route as Route
from .routes import RouteGroup as RouteGroup
from .routes import Socket as Socket
from .routes import SocketClosed as SocketClosed
from .routes import SocketRoute as SocketRoute
from .secrets import Secret as Secret
from .version import __version__ as __version__

if TYPE_CHECKING:
    from .agents import Agent as Agent
    from .agents import AgentMode as AgentMode
    from .agents import AgentState as AgentState
    from .config import load_config as load_config
    from .config_model import ProviderSection as ProviderSection
    from .daemon import Daemon as Daemon
    from .manifest import Manifest as Manifest
    from .plugins.loader import Plugins as Plugins
    from .turns.engine import user_message as user_message
    from .turns.events import Done as Done
    from .turns.events import Failed as Failed
    from .turns.events import Missed as Missed
    from .turns.events import TextDelta as TextDelta
    from .turns.events import Thinking as Thinking
    from .turns.events import ToolEnd as ToolEnd
    from .turns.events import ToolStart as ToolStart
    from .turns.events import TurnEvent as TurnEvent
    from .turns.events import TurnResult as TurnResult
    from .turns.turn import Turn as Turn
    from .turns.turn import TurnOptions as TurnOptions
    from .turns.warm import Conversation as Conversation

_LATER = {
    "agents": ("Agent", "AgentMode", "AgentState"),
    "config": ("load_config",),
    "config_model": ("ProviderSection",),
    "daemon": ("Daemon",),
    "manifest": ("Manifest",),
    "plugins.loader": ("Plugins",),
    "turns.engine": ("user_message",),
    "turns.events": (
        "Done",
        "Failed",
        "Missed",
        "TextDelta",
        "Thinking",
        "ToolEnd",
        "ToolStart",
        "TurnEvent",
        "TurnResult",
    ),
    "turns.turn": ("Turn", "TurnOptions"),
    "turns.warm": ("Conversation",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
