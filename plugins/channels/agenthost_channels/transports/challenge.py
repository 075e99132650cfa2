"""The GET by which vendors of Meta's kind see that a path is ours.

Source: https://developers.facebook.com/docs/graph-api/webhooks/getting-started.
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING

from agenthost import Unauthenticated

from ..contract import Knock, Opened

if TYPE_CHECKING:
    from agenthost import Secret

_CHALLENGE = re.compile(r"[\x21-\x7e]{1,200}")


def answered(knock: Knock, token: Secret | None) -> Opened:
    """Give a challenge back to who shows the token that the operator told the vendor.

    Raises:
        Unauthenticated: It is not shown, or none is set.
    """
    query = knock.query
    offered = query.get("hub.verify_token", "").encode("utf-8", "surrogatepass")
    right = b"" if token is None else token.reveal().encode()
    if not right or not hmac.compare_digest(offered, right):
        raise Unauthenticated("hub.verify_token is wrong")
    challenge = query.get("hub.challenge", "")
    if query.get("hub.mode") != "subscribe" or not _CHALLENGE.fullmatch(challenge):
        raise Unauthenticated("this is no challenge of a subscription")
    return Opened(body=challenge.encode())
