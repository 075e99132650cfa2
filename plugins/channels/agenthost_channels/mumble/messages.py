"""Messages of the control channel, of which few are needed.

Source: https://mumble-protocol.readthedocs.io, and Mumble.proto of the server's source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

TYPES = descriptor_pb2.FieldDescriptorProto
NUMBER, LONG, WORDS, TRUTH = (
    TYPES.TYPE_UINT32,
    TYPES.TYPE_UINT64,
    TYPES.TYPE_STRING,
    TYPES.TYPE_BOOL,
)
MANY = 100


class Kind(NamedTuple):
    """A kind of message: its number on the wire, and its fields by number and type."""

    number: int
    fields: Mapping[str, tuple[int, int]]


KINDS = {
    "Version": Kind(0, {"version": (1, NUMBER), "release": (2, WORDS)}),
    "Authenticate": Kind(
        2, {"username": (1, WORDS), "password": (2, WORDS), "opus": (5, TRUTH)}
    ),
    "Ping": Kind(3, {"timestamp": (1, LONG)}),
    "Reject": Kind(4, {"type": (1, NUMBER), "reason": (2, WORDS)}),
    "ServerSync": Kind(5, {"session": (1, NUMBER)}),
    "ChannelRemove": Kind(6, {"channel_id": (1, NUMBER)}),
    "ChannelState": Kind(
        7, {"channel_id": (1, NUMBER), "parent": (2, NUMBER), "name": (3, WORDS)}
    ),
    "UserRemove": Kind(8, {"session": (1, NUMBER), "reason": (3, WORDS)}),
    "UserState": Kind(
        9,
        {
            "session": (1, NUMBER),
            "name": (3, WORDS),
            "user_id": (4, NUMBER),
            "channel_id": (5, NUMBER),
            "self_mute": (9, TRUTH),
            "self_deaf": (10, TRUTH),
            "hash": (15, WORDS),
        },
    ),
    "TextMessage": Kind(
        11,
        {
            "actor": (1, NUMBER),
            "session": (2, NUMBER + MANY),
            "channel_id": (3, NUMBER + MANY),
            "tree_id": (4, NUMBER + MANY),
            "message": (5, WORDS),
        },
    ),
    "PermissionDenied": Kind(
        12,
        {
            "channel_id": (2, NUMBER),
            "session": (3, NUMBER),
            "reason": (4, WORDS),
            "type": (5, NUMBER),
        },
    ),
}
NAMES = {kind.number: name for name, kind in KINDS.items()}


def _classes() -> dict[str, Any]:
    # A file of its own pool: another program's messages may have the same names.
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="MumbleProto")
    for name, kind in KINDS.items():
        described = file.message_type.add(name=name)
        for field, (number, type_) in kind.fields.items():
            label = TYPES.LABEL_REPEATED if type_ > MANY else TYPES.LABEL_OPTIONAL
            described.field.add(
                name=field, number=number, type=type_ % MANY, label=label
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"MumbleProto.{name}")
        )
        for name in KINDS
    }


CLASSES = _classes()
