"""Section 6 of the semantics: URL patterns and their three defaults."""

from __future__ import annotations

import pytest
from agenthost_desktop_shell.labels import label_index, origin_index
from agenthost_desktop_shell.urls import compile_url, url_matches
from hypothesis import given
from hypothesis import strategies as st

MATCHES = [
    ("https://a.dev", "https://a.dev"),
    ("https://a.dev", "https://a.dev/any/path?query#fragment"),
    ("https://a.dev/", "https://a.dev/any/path?query#fragment"),
    ("https://a.dev", "https://a.dev:443/x"),
    ("http://127.0.0.1:4316", "http://127.0.0.1:4316/any"),
    ("http://127.0.0.1:*", "http://127.0.0.1:4316/"),
    ("http://127.0.0.1", "http://127.0.0.1:80/"),
    ("http://*:4316/*", "http://127.0.0.1:4316/x"),
    ("*://127.0.0.1:4316", "http://127.0.0.1:4316/x"),
    ("https://*.mydomain.dev", "https://x.mydomain.dev/"),
    ("https://*.mydomain.dev", "https://a.b.mydomain.dev/"),
    ("http://*", "http://any.host/path"),
    ("https://mydomain.dev/api/*", "https://mydomain.dev/api/x"),
    ("https://mydomain.dev/api/*", "https://mydomain.dev/api/x?q=1#f"),
    ("*://localhost", "http://localhost/"),
    ("*://localhost", "https://localhost/x"),
    ("*://localhost", "app://localhost/x"),
    ("https://a.dev?", "https://a.dev/?x"),
    ("https://a.dev/p#", "https://a.dev/p?x#y"),
    ("https://a.dev?x=1", "https://a.dev/any?x=1#f"),
]
MISSES = [
    ("https://a.dev", "https://a.dev:8443/"),
    ("https://a.dev", "http://a.dev/"),
    ("https://a.dev", "https://sub.a.dev/"),
    ("https://a.dev", "https://a.dev.evil.example/"),
    ("https://a.dev", "https://evil.example/https://a.dev"),
    ("http://127.0.0.1", "http://127.0.0.1:4316/"),
    ("https://*.mydomain.dev", "https://mydomain.dev/"),
    ("http://*", "http://any.host:8080/"),
    ("https://mydomain.dev/api/*", "https://mydomain.dev/api"),
    ("http://127.0.*:4316", "http://127.0.0.1:4316/"),
    ("http://localhost:4316", "http://127.0.0.1:4316/"),
    ("http://h:1/pa*", "http://h:1/other"),
    ("https://a.dev?x=1", "https://a.dev/?x=2"),
    ("https://a.dev", "nonsense"),
    ("https://a.dev", ""),
]


@pytest.mark.parametrize(("pattern", "url"), MATCHES)
def test_these_urls_match(pattern: str, url: str) -> None:
    assert url_matches(pattern, url)


@pytest.mark.parametrize(("pattern", "url"), MISSES)
def test_these_urls_do_not_match(pattern: str, url: str) -> None:
    assert not url_matches(pattern, url)


@pytest.mark.parametrize(
    "pattern",
    [
        "not a url (",
        "",
        "/path",
        "https://a:99999",
        "https://a/(\\p{",
        "\x00",
        "https://[",
    ],
)
def test_what_is_no_pattern_is_a_value_error(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_url(pattern)


HOSTS = st.sampled_from(["a.dev", "x.a.dev", "localhost", "127.0.0.1"])
PATHS = st.sampled_from(["", "/", "/p", "/p/q"])
QUERIES = st.sampled_from(["", "?", "?q"])
FRAGMENTS = st.sampled_from(["", "#", "#f"])
PARTS = st.tuples(HOSTS, PATHS, QUERIES, FRAGMENTS)


@given(PARTS, PARTS)
def test_the_three_defaults_hold_for_literal_patterns(
    pattern: tuple[str, str, str, str], url: tuple[str, str, str, str]
) -> None:
    def accepts(said: str, found: str, nothing: set[str]) -> bool:
        return said in nothing or said.strip("?#") == found.strip("?#")

    host, path, query, fragment = pattern
    expected = (
        host == url[0]
        and accepts(path, url[1] or "/", {"", "/"})
        and accepts(query, url[2], {"", "?"})
        and accepts(fragment, url[3], {"", "#"})
    )
    matched = url_matches("https://" + "".join(pattern), "https://" + "".join(url))
    assert matched is expected


PATTERNS = [
    *sorted({pattern for pattern, _ in (*MATCHES, *MISSES)}),
    r"https://[\:\:1]/",
    "https://a{.b}?.dev",
    "https://*.dev",
    "https://*a.dev",
    "app://*",
    "https://über.example",
]
URLS = [
    *sorted({url for _, url in (*MATCHES, *MISSES)}),
    "https://[::1]/x",
    "https://a.b.dev",
    "https://xa.dev",
    "https://A.DEV/",
    "https://XN--BER-GOA.example/",
    "https://user:pw@a.dev/",
    "https://0x7f.1/",
    "http://0x7f.1:4316/",
    "app://anything/x",
    "data:text/html,x",
    "https:\\\\a.dev",
]


@pytest.mark.parametrize("url", URLS)
def test_the_index_of_origins_finds_what_each_pattern_matches(url: str) -> None:
    index = origin_index((pattern, 1 << n) for n, pattern in enumerate(PATTERNS))
    expected = sum(1 << n for n, p in enumerate(PATTERNS) if url_matches(p, url))
    assert index(url) == expected
    assert index(url) == expected


def test_an_index_remembers_only_so_much() -> None:
    index = label_index([("a*", 1)])
    assert all(index(f"a{n}") for n in range(5000))
    assert index("a0") == 1
    assert index("b" * 5000) == 0
