"""A fresh environment on top of the one that runs the tests, and a home."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workshop:
    """Where plugins are installed and a daemon's home stands."""

    folder: Path

    @classmethod
    def furnished(cls, folder: Path) -> Workshop:
        """Make one; ``agenthost`` itself is seen in it, as pip would have put it."""
        venv.create(folder / "venv", symlinks=True)
        made = cls(folder)
        beneath = sysconfig.get_paths()["purelib"]
        overlay = f"import site; site.addsitedir({beneath!r})\n"
        (made.site / "beneath.pth").write_text(overlay, encoding="utf-8")
        command = folder / "venv" / "bin" / "agenthost"
        command.write_text(f'#!/bin/sh\nexec {made.python} -m agenthost_cli "$@"\n')
        command.chmod(0o755)
        return made

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def site(self) -> Path:
        base = {"base": str(self.folder / "venv")}
        return Path(sysconfig.get_paths(vars=base)["purelib"])

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        return self.execute([str(self.python), *arguments], cwd or self.folder)

    def execute(self, command: list[str], cwd: Path) -> str:
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        home = str(self.folder / "home")
        answer = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, "PATH": path, "AGENTHOST_HOME": home},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def pip(self, *arguments: str) -> None:
        self.run("-m", "pip", "-q", "--disable-pip-version-check", *arguments)

    def agenthost(self, *arguments: str) -> str:
        return self.run("-m", "agenthost_cli", *arguments)

    def plugins(self) -> dict[str, str]:
        """Status by key of every plugin, as the command line tells it."""
        rows = json.loads(self.agenthost("plugins", "list", "--json"))
        return {row["key"]: row["status"] for row in rows}

    def configure(self, text: str) -> None:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(text, encoding="utf-8")
