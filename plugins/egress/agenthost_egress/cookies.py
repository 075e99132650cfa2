"""Clients are shared by callers who share no state, so cookies are not kept."""

from __future__ import annotations

from http.client import HTTPResponse
from http.cookiejar import CookieJar
from urllib.request import Request


class NoCookies(CookieJar):
    """A jar that keeps nothing."""

    def extract_cookies(self, response: HTTPResponse, request: Request) -> None:
        """Leave the answer's cookies to whoever asked."""
