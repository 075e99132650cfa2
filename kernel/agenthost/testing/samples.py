"""What the provider contract says, and what it is answered."""

from __future__ import annotations

from collections.abc import Mapping

from agenthost_chat.chat import (
    Audio,
    File,
    Finish,
    Image,
    Message,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)

from ..errors import ProviderFault
from .simulators import (
    AnthropicMessagesWire,
    BedrockWire,
    CohereWire,
    GeminiWire,
    Line,
    OllamaWire,
    OpenAIChatWire,
    OpenAIResponsesWire,
    ReplicateWire,
    ScriptedCall,
    Turn,
    Wire,
    called,
)

WIRES: Mapping[str, Wire] = {
    "openai-chat": OpenAIChatWire(),
    "openai-responses": OpenAIResponsesWire(),
    "anthropic-messages": AnthropicMessagesWire(),
    "gemini-generateContent": GeminiWire(),
    "cohere-v2": CohereWire(),
    "bedrock-converse": BedrockWire(),
    "ollama": OllamaWire(),
    "replicate-predictions": ReplicateWire(),
}

KEY = "sk-contract-0123456789"
GIANT = b"x" * (1 << 20)
LONGEST = 64 * 1024
LONG = "word " * 500
WEATHER = ToolDefinition(
    "get_weather",
    "Tell the weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)
PICTURE = ("image/png", "iVBORw0=")
UNSEEN = (Audio("audio/wav", "UklGRg=="), File("a.csv", "text/csv", "YSxi"))
IN_LISBON = ScriptedCall("get_weather", '{"city": "Lisbon"}')
IN_PORTO = ScriptedCall("get_weather", '{"city": "Porto"}', "call_2")
TALK = (
    Message(Role.USER, (Text("hello"),)),
    Message(Role.ASSISTANT, (Text("hi there"),)),
    Message(Role.USER, (Text("weather?"),)),
    Message(
        Role.ASSISTANT,
        (
            Text("Let me look."),
            ToolUse("call_1", "get_weather", {"city": "Lisbon"}),
            ToolUse("call_2", "get_weather", {"city": "Évora"}),
        ),
    ),
    Message(
        Role.TOOL,
        (
            ToolOutput("call_1", "get_weather", "20 degrees"),
            ToolOutput("call_2", "get_weather", "no such city", is_error=True),
        ),
    ),
    Message(Role.ASSISTANT, (Text("Warm in Lisbon."),)),
    Message(Role.USER, (Text("and tomorrow?"),)),
)
TOLD: tuple[Line, ...] = (
    ("user", "hello"),
    ("assistant", "hi there"),
    ("user", "weather?"),
    ("assistant", "Let me look."),
    called("get_weather", {"city": "Lisbon"}),
    called("get_weather", {"city": "Évora"}),
    ("result", "20 degrees"),
    ("result", "no such city"),
    ("assistant", "Warm in Lisbon."),
    ("user", "and tomorrow?"),
)
CALLING = Turn(calls=(IN_LISBON, IN_PORTO), finish=Finish.TOOL_USE)
FAULTS = [
    (400, ProviderFault.BAD_REQUEST),
    (401, ProviderFault.AUTH),
    (402, ProviderFault.BILLING),
    (404, ProviderFault.MODEL_NOT_FOUND),
    (429, ProviderFault.RATE_LIMITED),
    (500, ProviderFault.SERVER),
    (502, ProviderFault.SERVER),
    (503, ProviderFault.OVERLOADED),
]


def user(*parts: Text | Image) -> Message:
    """Make what a user says."""
    return Message(Role.USER, parts)
