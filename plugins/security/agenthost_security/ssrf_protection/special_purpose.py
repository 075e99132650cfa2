"""The addresses with a special purpose, as their registries list them.

IANA's registries of special-purpose addresses (RFC 6890), with multicast (RFC 5771, RFC
4291) and the parts of 2000::/3 that IANA holds back (RFC 3513, RFC 4147). Nobody serves
the web to the public from any of them, also where the registry calls one reachable.
They are data of our own because the standard library's differ with its version.
"""

from __future__ import annotations

SPECIAL_V4 = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared address space of carriers",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link local",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "protocol assignments, with DS-Lite, PCP and TURN anycast",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "automatic multicast tunnels",
    "192.88.99.0/24": "6to4 relay anycast",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "AS112 by direct delegation",
    "198.18.0.0/15": "benchmarks",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, with limited broadcast",
}

SPECIAL_V6 = {
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::ffff:0:0/96": "IPv4 mapped",
    "64:ff9b::/96": "translated IPv4",
    "64:ff9b:1::/48": "translated IPv4, local use",
    "100::/64": "discard only",
    "100:0:0:1::/64": "dummy prefix",
    "2001::/23": "protocol assignments, with Teredo, ORCHID and drone ids",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "AS112 by direct delegation",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local",
    "fe80::/10": "link local",
    "fec0::/10": "site local",
    "ff00::/8": "multicast",
}

UNICAST_V6 = "2000::/3"
"""All that IANA gives out for the public; what is not in it is reserved."""

HELD_BACK_V6 = {
    "2d00::/8": "reserved by IANA",
    "2e00::/7": "reserved by IANA",
    "3000::/4": "reserved by IANA",
}
