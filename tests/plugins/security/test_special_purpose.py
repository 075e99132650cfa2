"""Each row of IANA's registries is refused, and what lies beside it is not."""

from __future__ import annotations

import random
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from agenthost import ALLOW, AddressCase, Deny
from agenthost_security.ssrf_protection import METADATA, public_address
from agenthost_security.ssrf_protection.special_purpose import SPECIAL_V4, SPECIAL_V6

# As the registries print them, rows within rows too: iana-ipv4-special-registry,
# iana-ipv6-special-registry, and those of multicast and of unicast allocations.
ROWS = [
    "0.0.0.0/8",
    "0.0.0.0/32",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.0/29",
    "192.0.0.8/32",
    "192.0.0.9/32",
    "192.0.0.10/32",
    "192.0.0.170/32",
    "192.0.0.171/32",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.88.99.2/32",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "224.0.0.0/4",
    "232.0.0.0/8",
    "239.0.0.0/8",
    "::1/128",
    "::/128",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001::/32",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:1::3/128",
    "2001:2::/48",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:30::/28",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "2d00::/8",
    "2e00::/7",
    "3000::/4",
    "4000::/3",
    "6000::/3",
    "8000::/3",
    "a000::/3",
    "c000::/3",
    "e000::/4",
    "f000::/5",
    "f800::/6",
    "fe00::/9",
]
BESIDE = [
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.31.195.255",
    "192.31.197.0",
    "192.52.192.255",
    "192.52.194.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "192.175.47.255",
    "192.175.49.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2001:200::",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
    "2003::",
    "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff",
    "2620:4f:8001::",
    "2c00::",
    "2cff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
]


def passes(address: str) -> bool:
    verdict = public_address(AddressCase("h.example", address, 443, frozenset()))
    assert verdict == ALLOW or isinstance(verdict, Deny)
    return verdict == ALLOW


@pytest.mark.parametrize("row", ROWS)
def test_no_address_of_a_row_is_public(row: str) -> None:
    network = ip_network(row)
    size = network.num_addresses
    for place in {0, size // 3, size // 2, size - 1}:
        assert not passes(str(network[place])), network[place]


@pytest.mark.parametrize("address", BESIDE)
def test_an_address_beside_a_row_is_public(address: str) -> None:
    assert passes(address)


@pytest.mark.parametrize("row", [*SPECIAL_V4, *SPECIAL_V6])
def test_each_row_that_is_shipped_stands_in_a_registry(row: str) -> None:
    # Translated IPv4 is as public as what it carries.
    carriers = {"::ffff:0:0/96", "64:ff9b::/96"}
    assert row in carriers | set(ROWS)


def test_what_the_standard_library_calls_private_never_passes() -> None:
    # A second opinion: it may let more through, by its version, and never less.
    dice = random.Random(1)
    drawn: list[IPv4Address | IPv6Address] = [
        *(IPv4Address(dice.getrandbits(32)) for _ in range(2_000)),
        *(IPv6Address(0x2 << 124 | dice.getrandbits(124)) for _ in range(2_000)),
    ]
    for row in ROWS:
        network = ip_network(row)
        drawn.append(network[dice.randrange(network.num_addresses)])
    let_through = [address for address in drawn if passes(str(address))]
    assert len(let_through) > 2_000
    assert all(address.is_global for address in let_through)
    assert not {ip_address(str(one)) for one in METADATA} & set(let_through)
