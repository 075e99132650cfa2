"""Vectors without a model: words are hashed to places, and counted there.

Texts with words in common are near to each other; what words mean plays no part. The
same text has the same vector on every machine.
"""

from __future__ import annotations

import asyncio
import math
import re
from array import array
from collections import Counter
from hashlib import blake2b

from agenthost import Embedded, EmbeddingCall, Usage

DIMENSIONS = 256
CHARS_A_TOKEN = 4
WORD = re.compile(r"\w+")


async def embed(call: EmbeddingCall) -> Embedded:
    """Hash each text, off the event loop."""
    vectors = await asyncio.to_thread(lambda: [vector(text) for text in call.texts])
    tokens = sum(-(-len(text) // CHARS_A_TOKEN) for text in call.texts)
    return Embedded(vectors, Usage(input_tokens=tokens))


def vector(text: str) -> array[float]:
    """Count a text's words at the places they hash to; the length is one."""
    words = Counter(WORD.findall(text.casefold())) or Counter([text])
    counts = [0.0] * DIMENSIONS
    for word, times in words.items():
        digest = blake2b(word.encode("utf-8", "replace"), digest_size=4).digest()
        sign = 1.0 if digest[0] & 1 else -1.0
        counts[int.from_bytes(digest[1:], "big") % DIMENSIONS] += sign * times
    # Words may cancel each other out; then the first place speaks for the text.
    if not any(counts):
        counts[0] = 1.0
    length = math.hypot(*counts)
    return array("f", (count / length for count in counts))
