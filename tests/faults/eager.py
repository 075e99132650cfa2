"""The daemon, with services that let it say as much as it likes.

Their own limits, a message a second in a conversation, would make hours of the
campaigns that are to find what is lost.
"""

import runpy
from dataclasses import replace

from agenthost_channels import facts
from agenthost_channels.contract import Facts

_written = facts.facts


def _eager(channel: str) -> Facts:
    return replace(_written(channel), per_second=1000.0, per_peer=1000.0)


facts.facts = _eager

if __name__ == "__main__":
    runpy.run_module("agenthost", run_name="__main__", alter_sys=True)
