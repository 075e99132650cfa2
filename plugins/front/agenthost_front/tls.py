"""TLS by a certificate and a key in files, read once at the start."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar

from agenthost import ConfigError

from .http2 import NAME

T = TypeVar("T")

SOON = timedelta(days=14)
_OTHERS = 0o007


class Tls(NamedTuple):
    """What a connection is encrypted with; ``fingerprint`` is the certificate's."""

    context: ssl.SSLContext
    fingerprint: str
    warnings: tuple[str, ...]


def read_tls(cert: Path, key: Path, now: float) -> Tls:
    """Read certificate chain and key.

    Raises:
        ConfigError: A file cannot be read or used, or others may read the key.
    """
    _check_mode(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([NAME, "http/1.1"])
    text = _read("tls_cert", lambda: cert.read_text(encoding="ascii"))
    # Without a password of its own it would ask the terminal for one.
    _read("tls_key", lambda: context.load_cert_chain(cert, key, password=""))  # nosec B106 # none, so that none is asked for
    leaf = _read("tls_cert", lambda: ssl.PEM_cert_to_DER_cert(_first(text)))
    return Tls(context, sha256(leaf).hexdigest(), tuple(_warnings(leaf, now)))


def _check_mode(key: Path) -> None:
    mode = _read("tls_key", lambda: key.stat().st_mode)
    if mode & _OTHERS:
        raise ConfigError(
            "server.tls_key: other users of this machine can read it; chmod 600 it"
        )


def _read(name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except ssl.SSLError as error:
        reason = (error.reason or "no PEM").lower().replace("_", " ")
        raise ConfigError(
            f"server.{name}: certificate and key cannot be used ({reason}); give a "
            "chain and its key without a password, both as PEM"
        ) from error
    except OSError as error:
        raise ConfigError(f"server.{name}: {error.strerror or 'unreadable'}") from error
    except ValueError as error:
        raise ConfigError(f"server.{name}: is no certificate as PEM") from error


def _first(text: str) -> str:
    end = "-----END CERTIFICATE-----"
    head, found, _ = text.partition(end)
    return head[head.find("-----BEGIN CERTIFICATE-----") :] + found


def _warnings(leaf: bytes, now: float) -> list[str]:
    from cryptography.x509 import load_der_x509_certificate

    ends = load_der_x509_certificate(leaf).not_valid_after_utc
    left = ends - datetime.fromtimestamp(now, UTC)
    if left > SOON:
        return []
    when = "expired" if left < timedelta(0) else "expires"
    day = ends.date().isoformat()
    return [f"server.tls_cert: it {when} on {day}; replace it and restart"]
