"""The SDK's wire types follow the published schemas."""

from schemas import wiretypes

SCHEMA = {
    "description": "A parcel.\n\nMore about it.",
    "properties": {
        "id": {"type": "string"},
        "weight": {"type": "number"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}},
        "note": {},
    },
    "required": ["id", "stops"],
    "$defs": {"Stop": {"description": "A stop.", "properties": {"at": {"type": "integer"}}, "required": ["at"]}},
}


def test_a_schema_becomes_a_typed_dict_with_its_definitions():
    """Required fields are plain, others NotRequired; references are names; an untyped field is Any."""
    assert (
        wiretypes.source({"Parcel": SCHEMA}).removeprefix(wiretypes.HEAD)
        == """

class Parcel(TypedDict):
    \"\"\"A parcel.\"\"\"

    id: str
    weight: NotRequired[float]
    labels: NotRequired[dict[str, str]]
    stops: list[Stop]
    note: NotRequired[Any]


class Stop(TypedDict):
    \"\"\"A stop.\"\"\"

    at: int
"""
    )
