"""What tests an adapter: a line that records, a stage to play on, and the contracts.

Third parties' adapters are tested with it as those of agenthost are.
"""

from .called import CalledContract, Caller
from .contract import ChannelContract
from .line import FakeLine
from .stage import Stage, played

__all__ = [
    "CalledContract",
    "Caller",
    "ChannelContract",
    "FakeLine",
    "Stage",
    "played",
]
