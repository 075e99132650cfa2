"""Logs: one line an event on standard error, keys blotted out."""

from __future__ import annotations

import logging
import re
import sys
import time

# What looks like a credential, whoever wrote it into a message.
_CREDENTIAL = re.compile(
    r"""(?ix)
    (?: \b(?:bearer|basic)\s+
      | \b(?:api[_-]?key|token|secret|password)["']?\s*[=:]\s*["']? )
    (?P<value>[^\s"',;&]{6,})
    | \b(?P<prefixed>(?:sk|pk|gsk|xai|r8|hf|AIza)[-_][A-Za-z0-9_-]{12,})
    """
)
_BLOT = "***"


def redacted(text: str) -> str:
    """Blot out what looks like a credential."""
    return _CREDENTIAL.sub(_blotted, text)


def _blotted(match: re.Match[str]) -> str:
    group = "value" if match["value"] else "prefixed"
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:start] + _BLOT + match[0][end:]


class LineFormatter(logging.Formatter):
    """``2026-01-01T00:00:00.000Z warning agenthost.daemon: text``."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record, with its traceback when it has one."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = f"{moment}.{int(record.msecs):03}Z {record.levelname.lower()}"
        text = f"{head} {record.name}: {record.getMessage()}"
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        return redacted(text)


def set_up_logs(level: str = "info") -> None:
    """Log to standard error from this level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("agenthost").setLevel(level.upper())
