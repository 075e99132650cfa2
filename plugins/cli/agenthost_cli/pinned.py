"""Speak TLS to the daemon of a home, whose certificate its own file names."""

from __future__ import annotations

import http.client
import ssl
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from .running import RunningDaemon


class PinnedConnection(http.client.HTTPSConnection):
    """A connection to exactly the daemon that announced itself.

    Its certificate is made out to another name than the address it is asked at here, it
    may be signed by nobody known, and one that has expired must not keep anybody from
    stopping the daemon. So it is compared with what the daemon wrote down, which only
    the owner of the home can do.
    """

    def __init__(self, daemon: RunningDaemon, timeout: float) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        super().__init__(daemon.host, daemon.port, timeout=timeout, context=context)
        self._fingerprint = daemon.fingerprint

    def connect(self) -> None:
        """Connect, and send nothing to anybody else.

        Raises:
            ssl.SSLError: Somebody else answers there.
        """
        super().connect()
        shown = cast("ssl.SSLSocket", self.sock).getpeercert(binary_form=True) or b""
        if not compare_digest(sha256(shown).hexdigest(), self._fingerprint):
            self.close()
            raise ssl.SSLError("another certificate than the daemon's is shown")
