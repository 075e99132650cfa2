"""The ciphers agree with the vendor's own library, and with its published samples."""

import pytest
from agenthost_channels.nostr import ciphers
from hypothesis import given, settings
from hypothesis import strategies as st

keys = pytest.importorskip("agenthost_channels.nostr.keys")
sdk = pytest.importorskip("nostr_sdk")

OURS, THEIRS = keys.Identity.new(), sdk.Keys.generate()
SHARED = OURS.shared_with(THEIRS.public_key().to_hex())
US = sdk.PublicKey.parse(OURS.pubkey)
V2 = sdk.Nip44Version.V2
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=700)

# https://github.com/paulmillr/nip44, nip44.vectors.json, v2.valid: the first of
# encrypt_decrypt, and of calc_padded_len.
PAYLOAD = (
    "AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABee0G5VSK0/9YypIObAtDKfYEAjD35uVk"
    "HyB0F4DwrcNaCXlCWZKaArsGrY6M9wnuTMxWfp1RTN9Xga8no+kF5Vsb"
)
PADDED = [(16, 32), (32, 32), (33, 64), (37, 64), (45, 64), (49, 64), (64, 64)]
PADDED += [(65, 96), (100, 128), (111, 128), (200, 224), (250, 256), (320, 320)]
PADDED += [(383, 384), (384, 384), (400, 448), (500, 512), (512, 512), (515, 640)]
PADDED += [(700, 768), (800, 896), (900, 1024), (1020, 1024), (65536, 65536)]


def test_a_published_payload_is_read() -> None:
    one = keys.Identity.read(f"{1:064x}")
    two = keys.Identity.read(f"{2:064x}")
    assert ciphers.decrypted(PAYLOAD, one.shared_with(two.pubkey)) == "a"


@pytest.mark.parametrize(("length", "padded"), PADDED)
def test_padding_is_as_published(length: int, padded: int) -> None:
    assert ciphers._padded(length) == padded


@settings(max_examples=8, deadline=None)
@given(TEXT)
def test_each_reads_what_the_other_wrote(text: str) -> None:
    secret = THEIRS.secret_key()
    theirs = sdk.nip44_encrypt(secret, US, text, V2)
    assert ciphers.decrypted(theirs, SHARED) == text
    assert sdk.nip44_decrypt(secret, US, ciphers.encrypted(text, SHARED)) == text
    of_old = sdk.nip04_encrypt(secret, US, text)
    assert ciphers.decrypted_of_old(of_old, SHARED) == text
    ours = ciphers.encrypted_of_old(text, SHARED)
    assert sdk.nip04_decrypt(secret, US, ours) == text


def test_a_changed_payload_is_refused() -> None:
    payload = ciphers.encrypted("a secret", SHARED)
    for at in (0, 5, 60, 90, len(payload) - 5):
        other = "A" if payload[at] != "A" else "B"
        with pytest.raises(ValueError, match=r"version|for us"):
            ciphers.decrypted(payload[:at] + other + payload[at + 1 :], SHARED)


@pytest.mark.parametrize("text", ["", "x" * 65536])
def test_what_cannot_be_encrypted_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="65535"):
        ciphers.encrypted(text, SHARED)
