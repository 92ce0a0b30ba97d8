"""How the tests of reads ask, of whom, and when."""

from datetime import UTC, datetime
from typing import Any

from tests.api.house import House

ACME = "/v1/tenants/acme"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def get(house: House, path: str) -> Any:
    response = await house.http.get(path)
    assert response.status_code == 200, response.text
    return response.json()
