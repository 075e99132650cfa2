"""The threads and processes of this machine keep every promise of their port."""

from __future__ import annotations

from functools import partial

import pytest
from agenthost.testing import OpenWorkers, WorkersContract
from agenthost_workers.limits import Limits
from agenthost_workers.local import LocalWorkers


class TestTheWorkersOfThisMachine(WorkersContract):
    """Few, so that the contract sees them busy soon."""

    @pytest.fixture
    def opened(self) -> OpenWorkers:
        few = Limits(threads=4, processes=2, patience=1.0, seconds=2.0, farewell=0.2)
        return partial(LocalWorkers, few)
