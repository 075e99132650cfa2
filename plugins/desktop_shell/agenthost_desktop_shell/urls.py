"""URL patterns of remote origins, with the three defaults of the capability format."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urlpattern import URLPattern

MAX_LENGTH = 2000


@lru_cache(maxsize=2048)
def compile_url(pattern: str) -> URLPattern:
    """Compile a URLPattern string; an unsaid path, query or fragment matches any.

    Raises:
        ValueError: The string is no URL pattern.
    """
    from urlpattern import URLPattern

    if len(pattern) > MAX_LENGTH:
        raise ValueError(f"the URL pattern is over {MAX_LENGTH} characters")
    # The binding answers text that is not Unicode with TypeError.
    pattern.encode()
    try:
        parsed = URLPattern(pattern)
    except ValueError as error:
        if "://" in pattern:
            raise
        problem = f"is no URL pattern: {error}; write https://{pattern}"
        raise ValueError(problem) from error
    return URLPattern(
        {
            "protocol": parsed.protocol,
            "username": parsed.username,
            "password": parsed.password,
            "hostname": parsed.hostname,
            "port": parsed.port,
            "pathname": "*" if parsed.pathname in {"", "/"} else parsed.pathname,
            "search": parsed.search or "*",
            "hash": parsed.hash or "*",
        }
    )


def url_matches(pattern: str, url: str) -> bool:
    """Tell whether the pattern accepts the URL; a text that is no URL never matches."""
    return compile_url(pattern).test(url)


@lru_cache(maxsize=1)
def _anything() -> URLPattern:
    from urlpattern import URLPattern

    return URLPattern({})


def host_of(url: str) -> str:
    """The host of a URL as patterns see it; empty for a text that is no URL."""
    found = _anything().exec(url)
    return found["hostname"]["input"] if found else ""
