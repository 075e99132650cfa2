"""A client that does nothing: it tells a test where the suite's server listens.

Its arguments are a folder and the address. The test drives a daemon meanwhile; this
ends once there is a file ``done``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

folder, url = Path(sys.argv[1]), sys.argv[-1]
(folder / "part").write_text(url)
(folder / "part").rename(folder / "url")
for _ in range(600):
    if (folder / "done").exists():
        break
    time.sleep(0.1)
