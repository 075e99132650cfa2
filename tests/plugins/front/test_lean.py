"""What a start leaves out is not imported, and is there for whoever wants it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from agenthost_front.lean import UNUSED, lean

with lean():
    import agenthost_front.front
assert not [name for name in UNUSED if name in sys.modules]

from hypercorn.protocol import h2

assert "h2" in sys.modules
assert h2.H2Protocol is not object
known = sys.modules["hypercorn.protocol.h2"]
with lean():
    assert sys.modules["hypercorn.protocol.h2"] is known

from agenthost_front.frames import SocketStream
from hypercorn.protocol.ws_stream import WSStream

assert issubclass(SocketStream, WSStream)
assert WSStream is not object

from hypercorn.config import Config
from hypercorn.logging import Logger

assert isinstance(Config().log, Logger)
"""


def test_others_import_it_as_if_nothing_had_been() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
