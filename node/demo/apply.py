"""Applies the demonstration's definitions through the HTTP API, as a user's own would be."""

from __future__ import annotations

from pathlib import Path

import yaml

from tidewheel import Client

DEFINITIONS = Path(__file__).with_name("schedules.yaml")


def apply(url: str) -> None:
    """Put every definition of the demonstration."""
    client = Client(url)
    for definition in yaml.safe_load_all(DEFINITIONS.read_text(encoding="utf-8")):
        kind, tenant, name = definition.pop("kind"), definition.pop("tenant"), definition.pop("name")
        put = client.put_schedule if kind == "Schedule" else client.put_job
        put(name, definition, tenant=tenant)
