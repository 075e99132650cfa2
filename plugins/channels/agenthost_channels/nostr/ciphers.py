"""What encrypts messages: NIP-44 version 2, and NIP-04 of old.

Sources: https://github.com/nostr-protocol/nips/blob/master/44.md, .../04.md.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import struct
from hashlib import sha256

from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES, ChaCha20
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

VERSION = b"\x02"
LONGEST_PLAIN = 0xFFFF
SHORTEST, LONGEST = 132, 87_472
BLOCK = 16


def encrypted(text: str, shared: bytes) -> str:
    """Encrypt for who shares a secret with us, by NIP-44.

    Raises:
        ValueError: The text is empty, or too long.
    """
    plain = text.encode()
    if not 0 < len(plain) <= LONGEST_PLAIN:
        raise ValueError("NIP-44 encrypts 1 to 65535 bytes")
    nonce = secrets.token_bytes(32)
    key, start, mac_key = _keys(shared, nonce)
    padded = struct.pack(">H", len(plain)) + plain.ljust(_padded(len(plain)), b"\0")
    hidden = _chacha(key, start, padded)
    mac = hmac.digest(mac_key, nonce + hidden, sha256)
    return base64.b64encode(VERSION + nonce + hidden + mac).decode()


def decrypted(payload: str, shared: bytes) -> str:
    """Read what was encrypted by NIP-44.

    Raises:
        ValueError: It is none, or was not encrypted for us.
    """
    if not SHORTEST <= len(payload) <= LONGEST:
        raise ValueError("no payload has this length")
    raw = base64.b64decode(payload, validate=True)
    version, nonce, hidden, mac = raw[:1], raw[1:33], raw[33:-32], raw[-32:]
    if version != VERSION:
        raise ValueError("the version of this encryption is unknown")
    key, start, mac_key = _keys(shared, nonce)
    if not hmac.compare_digest(hmac.digest(mac_key, nonce + hidden, sha256), mac):
        raise ValueError("the payload was not encrypted for us")
    padded = _chacha(key, start, hidden)
    (length,) = struct.unpack_from(">H", padded)
    if not length or len(padded) != 2 + _padded(length):
        raise ValueError("the padding is wrong")
    return padded[2 : 2 + length].decode()


def _keys(shared: bytes, nonce: bytes) -> tuple[bytes, bytes, bytes]:
    conversation = hmac.digest(b"nip44-v2", shared, sha256)
    keys = HKDFExpand(hashes.SHA256(), 76, nonce).derive(conversation)
    return keys[:32], keys[32:44], keys[44:]


def _chacha(key: bytes, start: bytes, data: bytes) -> bytes:
    # The library wants the counter, which begins at nought, before the nonce.
    return Cipher(ChaCha20(key, bytes(4) + start), None).encryptor().update(data)


def _padded(length: int) -> int:
    if length <= 32:
        return 32
    power = 1 << (length - 1).bit_length()
    chunk = max(32, power // 8)
    return chunk * ((length - 1) // chunk + 1)


def encrypted_of_old(text: str, shared: bytes) -> str:
    """Encrypt by NIP-04: anybody can change it on the way, and see who writes."""
    padder = padding.PKCS7(BLOCK * 8).padder()
    start = secrets.token_bytes(BLOCK)
    encryptor = Cipher(AES(shared), CBC(start)).encryptor()
    hidden = encryptor.update(padder.update(text.encode()) + padder.finalize())
    hidden += encryptor.finalize()
    return f"{base64.b64encode(hidden).decode()}?iv={base64.b64encode(start).decode()}"


def decrypted_of_old(payload: str, shared: bytes) -> str:
    """Read what was encrypted by NIP-04.

    Raises:
        ValueError: It is none.
    """
    hidden, _, start = payload.partition("?iv=")
    iv = base64.b64decode(start, validate=True)
    decryptor = Cipher(AES(shared), CBC(iv)).decryptor()
    raw = decryptor.update(base64.b64decode(hidden, validate=True))
    unpadder = padding.PKCS7(BLOCK * 8).unpadder()
    plain = unpadder.update(raw + decryptor.finalize()) + unpadder.finalize()
    return plain.decode()
