"""What an agent's manifest says of when it works by itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from agenthost import InvalidInput, ManifestTable
from agenthost_toml.types import Table
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

_CONDITION = re.compile(
    r"all|event:(agent_spawned|agent_terminated|lifecycle|system|memory_update)|"
    r"memory:\S{1,256}"
)


def _checked(read: Callable[[str], object]) -> AfterValidator:
    """Have pydantic name the key of what one of our own errors says."""

    def check(text: str) -> str:
        try:
            read(text)
        except InvalidInput as error:
            raise ValueError(error.message.removeprefix(f"{error.field}: ")) from error
        return text

    return AfterValidator(check)


def _due(text: str) -> None:
    from .spoken import when_of
    from .times import Times

    when = when_of(text)
    if when.at is not None:
        raise InvalidInput("cron", 'a moment comes once; use cron or "every 30m"')
    Times(when)


def _hours(text: str) -> None:
    from .quiet import quiet_of

    if text:
        quiet_of(text)


def _zone(text: str) -> None:
    from .zones import zone_of

    zone_of(text)


def _condition(text: str) -> str:
    if not _CONDITION.fullmatch(text):
        raise ValueError(
            "use all, memory:<key> or event: with agent_spawned, agent_terminated, "
            "lifecycle, system or memory_update"
        )
    return text


def _reactive(value: object) -> object:
    if value == "reactive":
        return {}
    if isinstance(value, str):
        raise ValueError(  # noqa: TRY004 - pydantic reports only ValueError
            f'{value!r} is no schedule; use "reactive", or a table with periodic, '
            "proactive or continuous"
        )
    return value


Cron = Annotated[str, Field(max_length=200), _checked(_due)]
Condition = Annotated[str, AfterValidator(_condition)]
Conditions = Annotated[
    tuple[Condition, ...], Field(strict=False, min_length=1, max_length=20)
]


class Periodic(Table, extra="forbid"):
    """It works at times: ``cron`` is an expression, or ``every 30m``."""

    cron: Cron


class Proactive(Table, extra="forbid"):
    """It works when something happens."""

    conditions: Conditions


class Continuous(Table, extra="forbid"):
    """It looks again and again whether there is something to do."""

    check_interval_secs: Annotated[int, Field(ge=10, le=86_400)] = 60


class Scheduling(Table, extra="forbid"):
    """When it works by itself; without any, only when it is asked (``reactive``)."""

    periodic: Periodic | None = None
    proactive: Proactive | None = None
    continuous: Continuous | None = None

    @model_validator(mode="after")
    def _one(self) -> Scheduling:
        said = (self.periodic, self.proactive, self.continuous)
        if sum(each is not None for each in said) > 1:
            raise ValueError("name one of periodic, proactive and continuous")
        return self


class Top(Table):
    """What stands beside ``name`` and ``model``."""

    schedule: Annotated[Scheduling, BeforeValidator(_reactive)] = Field(
        default_factory=Scheduling.model_construct,
        description='When it works by itself: `"reactive"`, `{periodic = {cron}}` '
        "(five fields, or `every 30m`), `{proactive = {conditions}}` or "
        "`{continuous = {check_interval_secs}}`.",
    )


class Autonomous(Table):
    """``[autonomous]``: how it works by itself."""

    quiet_hours: Annotated[str, _checked(_hours)] = Field(
        "", description="Hours in which it does not, such as `22:00-07:00`."
    )
    zone: Annotated[str, Field(max_length=64), _checked(_zone)] = Field(
        "UTC", description="The IANA zone of its quiet hours and its periodic times."
    )
    allowance_usd: Annotated[float, Field(gt=0, le=10_000)] | None = Field(
        None,
        description="US dollars that it may spend so in a day; nothing is "
        "`schedules.allowance_usd`.",
    )


SCHEDULE = ManifestTable("", Top)
AUTONOMOUS = ManifestTable("autonomous", Autonomous)
