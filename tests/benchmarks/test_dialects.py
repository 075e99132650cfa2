"""The rows of the dialects: they can be measured; how long it takes is not judged."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from agenthost.testing.samples import WIRES

from benchmarks import dialects, run
from benchmarks.figures import Row

FEW = dialects.Sizes(calls=1, rounds=1, events=3)


async def test_every_dialect_has_its_rows_streamed_and_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.jsonl")
    started = run.begin()
    rows: list[Row] = []
    async for row in dialects.measured(FEW):
        run.tell(started, row)
        rows.append(row)
    wanted = [
        f"{dialect}, {manner}, {figure}"
        for dialect in sorted(WIRES)
        for manner in ("stream", "whole")
        for figure in ("CPU", "added p50")
    ]
    assert [row.name for row in rows] == wanted
    assert all(math.isfinite(row.value) for row in rows)
    kept = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(kept) == len(wanted)
