"""``python -m agenthost``: the installed command ``agenthost start``."""

import sys
from importlib.metadata import entry_points

(command,) = entry_points(group="console_scripts", name="agenthost")
sys.argv.insert(1, "start")
sys.exit(command.load()())
