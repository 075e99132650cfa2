"""Logs: one line an event on standard error, ids at its end, keys blotted out.

Lines of the access log go to standard output, as whole as they come.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator

from agenthost import LOG_FIELDS

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
IDS = ("request_id", "turn_id", "agent_id")
ACCESS = "agenthost.access"
TEXT, JSON = "text", "json"


def redacted(text: str) -> str:
    """Blot out what looks like a credential."""
    return _CREDENTIAL.sub(_blotted, text)


def _blotted(match: re.Match[str]) -> str:
    group = "value" if match["value"] else "prefixed"
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:start] + _BLOT + match[0][end:]


def ids() -> Iterator[tuple[str, str]]:
    """The ids of the request, turn and agent at hand, as far as there are any."""
    fields = LOG_FIELDS.get({})
    return ((name, str(fields[name])) for name in IDS if fields.get(name))


def _moment(record: logging.LogRecord) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{moment}.{int(record.msecs):03}Z"


class LineFormatter(logging.Formatter):
    """``2026-01-01T00:00:00.000Z warning agenthost.daemon: text [turn=...]``."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record, with its traceback when it has one."""
        head = f"{_moment(record)} {record.levelname.lower()} {record.name}"
        text = f"{head}: {record.getMessage()}"
        if found := [f"{name.removesuffix('_id')}={value}" for name, value in ids()]:
            text = f"{text} [{' '.join(found)}]"
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        return redacted(text)


class JsonFormatter(logging.Formatter):
    """An object a record: ``time``, ``level``, ``logger``, ``message`` and the ids."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record, its traceback as ``traceback``."""
        told = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
            **dict(ids()),
        }
        if record.exc_info:
            told["traceback"] = redacted(self.formatException(record.exc_info))
        return json.dumps(told)


class BareFormatter(logging.Formatter):
    """The message alone: it is a line already."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a message."""
        return redacted(record.getMessage())


class AsConfigured(logging.Formatter):
    """Writes as the configuration says, once it has been read; text until then."""

    def __init__(self) -> None:
        super().__init__()
        self.form: Callable[[], str] = lambda: TEXT
        self._forms = {TEXT: LineFormatter(), JSON: JsonFormatter()}

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        return self._forms[self.form()].format(record)


def set_up_logs(level: str = "info") -> AsConfigured:
    """Log from this level on; what is returned takes who knows in which form."""
    handler, formatter = logging.StreamHandler(sys.stderr), AsConfigured()
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("agenthost").setLevel(level.upper())
    access, lines = logging.getLogger(ACCESS), logging.StreamHandler(sys.stdout)
    lines.setFormatter(BareFormatter())
    # Whether it is written, and in which form, the front decides.
    access.handlers, access.propagate = [lines], False
    access.setLevel(logging.INFO)
    return formatter
