"""A client that does nothing: it tells a test where the suite's server listens.

Its arguments are a folder and the address. The test drives a daemon meanwhile; this
ends once there is a file ``done``, with the suite, or when nobody waits any more.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

folder, url = Path(sys.argv[1]), sys.argv[-1]
(folder / "part").write_text(url)
(folder / "part").rename(folder / "url")
suite, end = os.getppid(), time.monotonic() + 600
while not (folder / "done").exists() and os.getppid() == suite:
    if time.monotonic() > end:
        break
    time.sleep(0.02)
