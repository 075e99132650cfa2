"""``python -m agenthost_cli`` is ``agenthost``."""

import sys

from . import main

sys.exit(main())
