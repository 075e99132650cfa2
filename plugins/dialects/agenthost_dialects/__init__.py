"""Wire dialects by name, and what dialects are made of.

A plugin with a dialect of its own may import the modules of this package: they are
described in ``docs/dialects.md`` and keep what it promises.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from agenthost import DialectSpec, EmbedderSpec, hookimpl


@hookimpl
def register_dialect() -> Iterable[DialectSpec]:
    """Offer the dialects to providers that name one."""
    from .spoken import DIALECTS, declared, late

    for name in DIALECTS:
        yield DialectSpec(name, partial(declared, name), partial(late, name))


@hookimpl
def register_embedder() -> Iterable[EmbedderSpec]:
    """Offer embeddings in the dialects that have them; some have transcriptions."""
    from .spoken import EMBEDDINGS, TRANSCRIPTIONS, Listening, embed

    for name in EMBEDDINGS:
        kind = Listening if name in TRANSCRIPTIONS else EmbedderSpec
        yield kind(name, partial(embed, name))
