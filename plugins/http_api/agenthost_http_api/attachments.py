"""Messages that name files: checked before a turn starts, and shown again."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from agenthost import (
    UPLOAD,
    Agent,
    Call,
    Context,
    File,
    InvalidInput,
    Message,
    ModelFacts,
    Role,
    TooLarge,
    Upload,
    user_message,
)

from .files import own_file
from .shapes import FileInMessage

BYTES_PER_TOKEN = 4


async def asked_with(
    call: Call, agent: Agent, words: str, files: Sequence[UUID] | None, turn: str = ""
) -> tuple[Message, Context]:
    """Make a message that may name files, and the context that it comes with.

    Args:
        call: Who asks.
        agent: Whose files they are.
        words: What is said; it may be nothing where there are files.
        files: Their ids.
        turn: The turn's id where it may have been asked before.

    Raises:
        InvalidInput: It is empty, or the agent's model cannot take one of them.
        NotFound: One is not there, or is somebody else's.
        TooLarge: The words, or a text, are too long.
    """
    if not files:
        return user_message(words), call.context
    said = user_message(words).parts if words.strip() else ()
    if turn and await call.host.journal.find(turn) is not None:
        # It was asked before, and is answered from what was written down then.
        return Message(Role.USER, said), call.context
    model = call.host.agents.target_of(agent).model
    uploads = [
        await own_file(call, agent.id, str(each)) for each in dict.fromkeys(files)
    ]
    for upload in uploads:
        _check(upload, model)
    named = (File(u.name, u.media_type, uri=UPLOAD + u.id) for u in uploads)
    labels = (upload.labels for upload in uploads)
    message = Message(Role.USER, (*said, *named))
    return message, call.context.labelled(*labels)


def files_of(message: Message) -> list[FileInMessage]:
    """Show the files that a message names; one that it has itself has no id."""
    return [
        {
            "file_id": part.uri.removeprefix(UPLOAD),
            "name": part.name,
            "type": part.media_type,
        }
        for part in message.parts
        if isinstance(part, File) and part.uri
    ]


def _check(upload: Upload, model: ModelFacts) -> None:
    kind = upload.media_type
    if kind.startswith("text/"):
        if upload.size > model.context_window * BYTES_PER_TOKEN:
            raise TooLarge(
                f"files: {upload.name!r} is longer than the {model.context_window} "
                f"tokens that {model.id} reads at once; send a part of it"
            )
        return
    image = kind.startswith("image/")
    if model.supports_vision if image else model.documents:
        return
    ability = "supports_vision" if image else "supports_documents"
    raise InvalidInput(
        "files",
        f"{model.id} takes no {kind} ({upload.name!r}); give the agent a model that "
        f"does: GET /api/models says {ability} of each",
    )
