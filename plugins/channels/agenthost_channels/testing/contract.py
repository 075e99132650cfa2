"""What every adapter promises, as tests to inherit."""

from __future__ import annotations

from .care import CareContract
from .hearing import HearingContract
from .saying import SayingContract


class ChannelContract(HearingContract, SayingContract, CareContract):
    """An adapter keeps every promise of a channel.

    A subclass gives the fixture ``stage``: the vendor's server, or its simulator, with
    a person. What the vendor has not is skipped, with its reason.

    Example:
        ::

            class TestPager(ChannelContract):
                @pytest.fixture
                async def stage(self) -> AsyncIterator[Stage]:
                    async with PagerStage() as stage:
                        yield stage
    """
