"""What a plain install brings: megabytes and distributions."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BROUGHT_BY_VENV = ("pip", "setuptools", "wheel")


def size_and_count() -> tuple[float, int]:
    """Install into a new environment; return its MB and its distributions."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", str(ROOT)], check=True)
        (site,) = Path(folder).glob("lib/python*/site-packages")
        return megabytes(site), len(distributions(site))


def distributions(site: Path) -> list[str]:
    """Name what is installed, without what every environment has."""
    names = (path.name.partition("-")[0] for path in site.glob("*.dist-info"))
    return [name for name in names if name not in BROUGHT_BY_VENV]


def megabytes(site: Path) -> float:
    """Sum the files of an installation, without what every environment has."""
    counted = (
        path.stat().st_size
        for path in site.rglob("*")
        if path.is_file() and not _of_venv(path.relative_to(site))
    )
    return sum(counted) / 1_000_000


def _of_venv(path: Path) -> bool:
    return path.parts[0].partition("-")[0] in BROUGHT_BY_VENV
