"""The program that the suite takes for a client: it hands on what it is told.

Its arguments are a port of the test's and the address of the suite's server. The test
is the client; this ends as the test says, once it has done.
"""

from __future__ import annotations

import json
import os
import socket
import sys

told = {
    "scenario": os.environ["MCP_CONFORMANCE_SCENARIO"],
    "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
    "url": sys.argv[2],
}
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as test:
    test.sendall(f"{json.dumps(told)}\n".encode())
    said = test.makefile().read()
sys.exit(int(said or 1))
