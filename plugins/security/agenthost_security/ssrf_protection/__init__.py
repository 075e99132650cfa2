"""Refuse outbound requests to machines that only we can reach.

Names and ports are judged before a request, addresses when the socket is made, so a
name that changes its address in between gains nothing. Hosts that the operator
configured may be local; metadata services of clouds only when named literally.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from agenthost import (
    ALLOW,
    AddressCase,
    Deny,
    Guard,
    SecuritySystem,
    UrlCase,
    Verdict,
    hookimpl,
)

from .special_purpose import HELD_BACK_V6, SPECIAL_V4, SPECIAL_V6, UNICAST_V6

Address = IPv4Address | IPv6Address

METADATA = frozenset(
    ip_address(text)
    for text in ("169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
METADATA_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.aws.internal", "instance-data"}
)
SHOWN = 253
"""The longest name that there is."""
LOCAL_NAMES = ("localhost", "ip6-localhost", "ip6-loopback")
LOCAL_SUFFIXES = (".localhost", ".localdomain", ".local", ".internal")
NAT64 = IPv6Network("64:ff9b::/96")
SPECIAL = tuple(ip_network(text) for text in (*SPECIAL_V4, *SPECIAL_V6, *HELD_BACK_V6))
UNICAST = IPv6Network(UNICAST_V6)


def public_name(case: UrlCase) -> Verdict:
    """Deny a host whose name alone says that it is local or a metadata service."""
    return _judged_name(case.host.lower().rstrip("."), case.allowed_hosts)


def public_address(case: AddressCase) -> Verdict:
    """Deny an address that is not public, whatever it is wrapped in."""
    try:
        return _judged_address(case.host, case.address, case.allowed_hosts)
    except ValueError:
        return Deny(f"the address of {_shown(case.host)} cannot be read")


# Remembered by what decides alone: a case would keep the context of its turn alive.
@lru_cache(maxsize=1024)
def _judged_name(host: str, allowed: frozenset[str]) -> Verdict:
    if host in METADATA_NAMES and host not in allowed:
        return Deny(f"{_shown(host)} is a metadata service; allow it by its own name")
    with suppress(ValueError):
        return _judged_address(host, host, allowed)
    if not _is_local_name(host) or _names(allowed, host):
        return ALLOW
    return Deny(_remedy(host))


@lru_cache(maxsize=1024)
def _judged_address(host: str, text: str, allowed: frozenset[str]) -> Verdict:
    address = ip_address(text.partition("%")[0])
    forms = tuple(_unwrapped(address))
    literal = _literals(allowed)
    if any(form in METADATA and form not in literal for form in forms):
        return Deny(f"{_shown(host)} is a metadata service; allow it by its address")
    if all(_is_public(form) for form in forms):
        return ALLOW
    if _names(allowed, host) or _holds(allowed, address):
        return ALLOW
    return Deny(_remedy(host))


def _remedy(host: str) -> str:
    told = f"{_shown(host)} is not a public address"
    return f"{told}; the operator can add it to allowed_hosts"


def _shown(host: str) -> str:
    return host[:SHOWN].encode("utf-8", "replace").decode()


def _is_local_name(host: str) -> bool:
    return host in LOCAL_NAMES or host.endswith(LOCAL_SUFFIXES)


def _unwrapped(address: Address) -> Iterator[Address]:
    """Yield the address and every address that is carried inside it."""
    yield address
    if isinstance(address, IPv4Address):
        return
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    packed = int(address)
    if packed >> 32 == 0 and packed > 1:
        inner.append(IPv4Address(packed))
    if address in NAT64:
        inner.append(IPv4Address(packed & 0xFFFFFFFF))
    if packed >> 32 & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):
        inner.append(IPv4Address(packed & 0xFFFFFFFF))
    yield from (found for found in inner if found is not None)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if _carries_v4(address):
            return True
        if address not in UNICAST:
            return False
    return not any(address in network for network in SPECIAL)


def _carries_v4(address: IPv6Address) -> bool:
    """Tell a translated address, which is as public as the one that it carries."""
    return address.ipv4_mapped is not None or address in NAT64


def _names(allowed: frozenset[str], host: str) -> bool:
    """Tell whether the operator wrote this host, or a pattern that holds it."""
    return any(
        fnmatchcase(host, entry) if entry.startswith("*.") else host == entry
        for entry in (raw.lower().rstrip(".").strip("[]") for raw in allowed)
    )


def _literals(allowed: frozenset[str]) -> frozenset[Address]:
    found = set()
    for entry in allowed:
        with suppress(ValueError):
            found.add(ip_address(entry.strip("[]")))
    return frozenset(found)


def _holds(allowed: frozenset[str], address: Address) -> bool:
    """Tell whether a configured address or network holds the address."""
    for entry in allowed:
        with suppress(ValueError):
            if address in ip_network(entry.strip("[]"), strict=False):
                return True
    return False


def self_test() -> None:
    """See a local address refused in every dress, and a public one pass.

    Raises:
        RuntimeError: A case was judged wrongly.
    """
    # A proof is of now, not of what was judged before.
    _judged_name.cache_clear()
    _judged_address.cache_clear()
    none: frozenset[str] = frozenset()
    local = ("127.0.0.1", "10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "::1")
    for address in (*local, *map(str, METADATA)):
        if public_address(AddressCase("probe", address, 80, none)) == ALLOW:
            raise RuntimeError(f"{address} was let through")
    if public_name(UrlCase("http", "localhost", 80, none)) == ALLOW:
        raise RuntimeError("localhost was let through")
    if public_address(AddressCase("probe", "1.1.1.1", 443, none)) != ALLOW:
        raise RuntimeError("a public address was refused")


@hookimpl
def security_system() -> SecuritySystem:
    """Offer protection against server-side request forgery."""
    return SecuritySystem(
        "ssrf_protection",
        {Guard.URL: public_name, Guard.ADDRESS: public_address},
        self_test,
    )
