"""The files on this machine keep every promise of their port."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agenthost.testing import FilesContract, OpenFiles
from agenthost_storage import beneath, files, open_files


class TestTheFilesOfThisMachine(FilesContract):
    """Folders below a root, opened in either way."""

    @pytest.fixture(params=[beneath.by_kernel, beneath.by_component])
    def opened(
        self, request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> OpenFiles:
        monkeypatch.setattr(files, "opener", lambda: request.param)
        return partial(open_files, tmp_path)
