"""HTTP/2 is not imported, and is there for whoever else wants it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from agenthost_front.http2 import UNUSED, without_http2

with without_http2():
    import agenthost_front.front
assert not [name for name in UNUSED if name in sys.modules]

import h2.connection

known = h2.connection
assert known.H2Connection
with without_http2():
    import h2.connection as again
assert again is known
"""


def test_others_import_it_as_if_nothing_had_been() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
