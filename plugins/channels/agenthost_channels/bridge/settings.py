"""What is said of each channel, whatever its service."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from agenthost_toml.types import Positive, Table
from pydantic import ConfigDict, Field, RootModel


class Binding(Table):
    """``[[channels.<id>.bindings]]``: which agent answers where.

    ``*`` stands for anything within a name; the binding that says most counts, of
    equal ones the first.
    """

    agent: str = Field(description="The agent that answers there, by name or id.")
    also: list[str] = Field(
        default_factory=list,
        description="Agents that answer there too, each under its name.",
    )
    account: str = Field("*", description="The account it holds for.")
    peer: str = Field("*", description="The person, group or room it holds for.")
    thread: str = Field("*", description="The thread it holds for.")


class ChannelSection(Table, extra="allow"):
    """``[channels.<id>]``; its other keys are those of the channel itself."""

    __pydantic_extra__: dict[str, Any]

    enabled: bool = Field(default=True, description="Whether it is connected.")
    agent: str = Field(description="The agent that answers, by name or id.")
    bindings: list[Binding] = Field(
        default_factory=list, description="Where other agents answer."
    )
    agents: list[str] = Field(
        default_factory=list,
        description="The agents that people may choose with `/agent`; none by default.",
    )
    allow_from: list[str] = Field(
        default_factory=list,
        description="Who may speak: the service's ids of persons. Nobody else is "
        "answered, nor kept.",
    )
    operators: list[str] = Field(
        default_factory=list,
        description="Who may speak and also change the agent, with `/model`: the "
        "service's ids of persons.",
    )
    dm_policy: Literal["allow_list", "pairing", "ignore"] = Field(
        "allow_list",
        description="Who is answered in a direct conversation: those on the lists; "
        "with `pairing` also who is linked to a person, and strangers get a code that "
        "you confirm; nobody.",
    )
    group_policy: Literal["ignore", "mention_only", "commands_only", "all"] = Field(
        "mention_only",
        description="What is answered in a group: nothing, what speaks to the agent, "
        "commands such as `/new`, or all that those say who may speak.",
    )
    rate_limit_per_user: int = Field(
        0, ge=0, description="Messages a minute of one person; 0 for no limit."
    )
    max_cost_usd: float | None = Field(
        None, gt=0, description="What the answer to one message may cost."
    )
    max_cost_usd_per_user: float | None = Field(
        None,
        gt=0,
        description="What one person's messages may cost in a day of UTC; counted anew "
        "after a start.",
    )
    model: str = Field(
        "",
        description="The model that answers here instead of the agent's own, such as "
        "`groq/llama-4`; an agent that is pinned keeps its own.",
    )
    instructions: str = Field(
        "", description="What the agent is told here behind its own system prompt."
    )
    output_format: Literal["native", "plain"] = Field(
        "native", description="The service's own markup, or none."
    )
    threading: bool = Field(
        default=True,
        description="Whether an answer is shown as a reply to its message.",
    )
    typing_indicator: bool = Field(
        default=True,
        description="Whether it is shown that an answer is being made, where the "
        "service can.",
    )
    max_file_mb: int = Field(
        10,
        ge=0,
        le=25,
        description="How large a file may be that comes or goes, in MB; 0 for none.",
    )
    streaming: bool = Field(
        default=False,
        description="Whether an answer is shown as it is made, by changing its "
        "message, where the service can.",
    )
    reactions: bool = Field(
        default=False,
        description="Whether a message that is answered gets an emoji that says so, "
        "and then whether it went well, where the service can.",
    )
    prefix_agent_name: bool = Field(
        default=False, description="Whether an answer begins with the agent's name."
    )
    new_after_idle_minutes: int = Field(
        0,
        ge=0,
        description="After so long a silence a conversation begins anew; 0 for never.",
    )
    new_after_messages: int = Field(
        0,
        ge=0,
        description="After so many messages a conversation begins anew; 0 for never.",
    )
    send_to: list[str] = Field(
        default_factory=list,
        description="To whom agents (`channel_send`) and schedules may say something "
        "first: the service's ids of persons, groups and rooms, `*` for anything "
        "within one; nobody by default.",
    )
    allowed_hosts: list[str] = Field(
        default_factory=list, description="Hosts of the service that may be local."
    )
    webhooks_per_minute: Positive = Field(
        3000,
        description="Signed webhooks that are taken in a minute, and at once; further "
        "ones are answered 429, and the service sends them again.",
    )


class Channels(RootModel):  # type: ignore[type-arg]  # reason: with one, it is built at import
    """``[channels.<id>]``: the channels that are connected, by id."""

    # What is on, and how, follows the file as soon as it is read anew.
    read_at_use: ClassVar = True
    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    root: dict[str, ChannelSection] = Field(default_factory=dict)
