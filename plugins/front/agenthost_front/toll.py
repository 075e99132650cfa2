"""What a peer pays for frames that carry no request: HTTP/2 lets it send them freely.

Floods of SETTINGS, PING, resets or empty frames cost their sender almost nothing and
us a look at each (CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-28182). So they are
counted before anything looks at them, by the nine bytes that every frame begins with
(RFC 9113, 4.1).
"""

from __future__ import annotations

from collections.abc import Callable

BURST = 1000.0
"""Frames that a peer may send at once."""
PER_SECOND = 100.0
PER_SENT = 2.0
"""Frames it may send for each of ours that answers: a request, a window."""
_HEAD = 9
_PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
_DATA = 0
_SMALL = 256


class Toll:
    """Counts the frames of one connection.

    A frame of a body is free when it carries something to speak of.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen = clock()
        self._left = BURST
        # Bytes that do not belong to a frame's head: first the preface.
        self._skip = _PREFACE
        self._head = b""

    def sent(self) -> None:
        """Note a frame of ours that answers."""
        self._left = min(BURST, self._left + PER_SENT)

    def pays(self, data: bytes) -> bool:
        """Count the frames that begin in what arrived; False when they are too many."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._seen) * PER_SECOND)
        self._seen = now
        at, end = 0, len(data)
        while True:
            step = min(self._skip, end - at)
            at += step
            self._skip -= step
            if at >= end:
                return self._left >= 0
            lacks = _HEAD - len(self._head)
            self._head += data[at : at + lacks]
            at += lacks
            if len(self._head) < _HEAD:
                return self._left >= 0
            size = int.from_bytes(self._head[:3], "big")
            if self._head[3] != _DATA or size < _SMALL:
                self._left -= 1
            if self._left < 0:
                return False
            self._skip, self._head = size, b""
