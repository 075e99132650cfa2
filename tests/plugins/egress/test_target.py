"""The strict reading of URLs."""

from __future__ import annotations

import httpx
import pytest
from agenthost import InvalidInput
from agenthost_egress.target import Target, target_of


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("http://example.com", Target("http", "example.com", 80)),
        ("HTTPS://Example.COM.:8443/x", Target("https", "example.com", 8443)),
        ("https://[2606:4700::1111]/", Target("https", "2606:4700::1111", 443)),
        ("http://1.1.1.1:8080", Target("http", "1.1.1.1", 8080)),
        ("http://bücher.example/", Target("http", "xn--bcher-kva.example", 80)),
        ("http://a_b.my-host/", Target("http", "a_b.my-host", 80)),
        ("http://3com.example", Target("http", "3com.example", 80)),
    ],
)
def test_plain_urls_are_read(text: str, target: Target) -> None:
    assert target_of(httpx.URL(text)) == target


@pytest.mark.parametrize(
    "text",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "//example.com/",
        "/path",
        "http:///path",
        "http://user@example.com/",
        "http://user:pw@example.com/",
        "http://public:80@127.0.0.1/",
        "http://2130706433/",
        "http://017700000001/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://127.0.1/",
        "http://0/",
        "http://0x/",
        "http://127.0.0.0x1/",
        "http://example.com%2f@127.0.0.1/",
        "http://127.0.0.1%23.example.com/",
        "http://a%2eb/",
        "http://ex\\ample.com/",
        "http://example.com\\@127.0.0.1/",
        "http://a..b/",
        "http://.a/",
        "http://example.com:0/",
        "http://[fe80::1%25eth0]/",
        "http://{x}/",
        "http://a$b/",
    ],
)
def test_anything_two_parsers_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises((InvalidInput, httpx.InvalidURL)):
        target_of(httpx.URL(text))
