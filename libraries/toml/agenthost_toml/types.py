"""Types that fields of a TOML table often have, and the table itself."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T", bound=BaseModel)

_HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?")

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Table(BaseModel):
    """A TOML table: immutable, and no value is bent into another type."""

    model_config = ConfigDict(
        strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


def unwritten(model: type[T]) -> T:
    """Default a field to a model whose fields all have defaults.

    ``field: Model = Model()`` would build a validator at import; this builds none, and
    checks nothing: the defaults must be right.
    """
    default: T = Field(default_factory=model.model_construct)
    return default


def shorthand(key: str) -> BeforeValidator:
    """Let text alone stand for a table with this key."""
    return BeforeValidator(lambda v: {key: v} if isinstance(v, str) else v)


def trimmed_line(value: object) -> str:
    """Take one line of text, such as a key, without the space around it.

    Raises:
        ValueError: It is no text, or has more than one line.
    """
    if not isinstance(value, str):
        raise ValueError(  # noqa: TRY004 - pydantic reports only ValueError
            'must be text in quotes, such as "a-long-random-key"'
        )
    text = value.strip()
    if not text.isprintable():
        raise ValueError("must be printable characters on one line")
    return text


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach the host; an unknown name is not."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def split_address(address: str) -> tuple[str, int]:
    """Take ``host:port`` or ``[v6]:port`` apart.

    Raises:
        ValueError: It is neither, or the port is out of range.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host:
        raise ValueError('must be host:port, such as "127.0.0.1:4200"')
    if not (re.fullmatch(r"[0-9]{1,5}", port) and int(port) <= 65_535):
        raise ValueError("the port must be a whole number from 0 to 65535")
    return _checked_host(host), int(port)


def _checked_host(host: str) -> str:
    if host.startswith("["):
        try:
            inner = host[1:-1] if host.endswith("]") else ""
            return str(ipaddress.IPv6Address(inner))
        except ValueError:
            raise ValueError('must be [address]:port, such as "[::1]:4200"') from None
    if ":" in host:
        raise ValueError('an IPv6 address stands in brackets, as in "[::1]:4200"')
    looks_numeric = host.replace(".", "").isdigit()
    if looks_numeric:
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ValueError("the host is not an IPv4 address") from None
    if not _HOST.fullmatch(host):
        raise ValueError('must be host:port, such as "127.0.0.1:4200"')
    return host


def _address(value: str) -> str:
    split_address(value)
    return value


def _label(value: str) -> str:
    if not _LABEL.fullmatch(value):
        raise ValueError(
            "must be 1 to 64 letters, digits, dots, hyphens or underscores, beginning "
            "with a letter or digit"
        )
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def blank_to_none(value: object) -> object:
    """Let blank text count as not set."""
    return None if isinstance(value, str) and not value.strip() else value


Names = Annotated[tuple[str, ...], Field(strict=False)]
Blankable = Annotated[str | None, BeforeValidator(blank_to_none)]
Lower = BeforeValidator(_lower)
Label = Annotated[str, AfterValidator(_label)]
Address = Annotated[str, AfterValidator(_address)]
Positive = Annotated[int, Field(ge=1, le=2**53)]
Count = Annotated[int, Field(ge=0, le=2**53)]
