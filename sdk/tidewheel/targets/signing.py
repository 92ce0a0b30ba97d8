"""Standard Webhooks: who receives a request can see that it comes from one who has the secret, and is not an old one.

What is signed is `id.timestamp.body`; neither the URL nor other headers are. Several keys give several signatures, so
that a secret can be replaced without a moment in which one side has only the old and the other only the new.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"
KEY_BYTES_MIN, KEY_BYTES_MAX = 24, 64  # of the specification


def key_of(secret: str) -> bytes:
    """The key in a secret's text, `whsec_` and base64; ValueError says what is wrong and never what it is."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise ValueError(f"must be {PREFIX} and the base64 of {KEY_BYTES_MIN}-{KEY_BYTES_MAX} random bytes")
    return key


def headers(keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a request: its id and time, and a signature by each key. Without a key it is not signed."""
    said = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if keys:
        said["webhook-signature"] = " ".join(f"v1,{_signature(key, message_id, timestamp, body)}" for key in keys)
    return said


def _signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    content = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
