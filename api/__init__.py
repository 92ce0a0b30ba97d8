"""THE DOOR: commands in, queries out, over HTTP.

    PUT, POST, DELETE ─▶ commander ─▶ schedule-changes …… replies ─▶ the owner's answer
    GET               ─▶ reading   ─▶ read model (rows) and forecast (the same arithmetic that decides)
    workers           ─▶ relay     ─▶ attempts         …… dispatch.<queue> ─▶ mailbox ─▶ leases
    people            ─▶ page      ─▶ the same read model, as HTML

`create_app` makes the application from `ApiServices`, the ports of the process it lives in: there are no globals.
`gate` stands before everything (hosts, origins, sizes), `problems` behind it (every error is problem+json).

What a crash does: nothing is stored here. A write that was not answered may stand in the log: its repeat, under the
same idempotency key, is answered as the first time. A worker repeats its claim and is given the same leases.
"""

from api.app import create_app, openapi_document

__all__ = ["create_app", "openapi_document"]
