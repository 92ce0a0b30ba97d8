"""Samples of every type stay readable for ever: what was written once is read by every later version, byte for byte."""

from pathlib import Path

import orjson
import pytest

from schemas import codec, commands, definitions
from tidewheel import wire

GOLDEN = Path(__file__).parents[2] / "schemas" / "golden"
SAMPLES = sorted(GOLDEN.glob("*/*.json"))
FACTS = [path for path in SAMPLES if path.parent.name in codec.TYPES]
COMMANDS = [path for path in SAMPLES if path.parent.name in commands.COMMANDS]


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("type_", [*codec.TYPES, *commands.COMMANDS])
def test_every_type_has_a_sample(type_):
    """A first one: python -m schemas.sample TYPE > schemas/golden/TYPE/1.json."""
    assert (GOLDEN / type_ / "1.json").exists()


def test_every_sample_is_of_a_known_type():
    assert {*FACTS, *COMMANDS} == set(SAMPLES)


@pytest.mark.parametrize("path", FACTS, ids=name)
def test_a_fact_is_read_and_written_again_byte_for_byte(path):
    record = orjson.dumps(orjson.loads(path.read_bytes()))
    envelope = codec.read_envelope(record, ())
    fact = codec.decode(envelope)
    assert fact == codec.read_fact(record)
    assert path.parent.name == fact.TYPE
    assert envelope.time is not None
    assert codec.encode(fact, source=envelope.source, time=envelope.time) == (envelope.id, record)


@pytest.mark.parametrize("type_", codec.TYPES)
def test_the_samples_of_a_type_show_all_its_fields(type_):
    shown = {key for path in (GOLDEN / type_).glob("*.json") for key in orjson.loads(path.read_bytes())["data"]}
    schema = orjson.loads((GOLDEN.parent / "published" / "facts" / f"{type_}.json").read_bytes())
    assert set(schema["properties"]) - shown == set()


@pytest.mark.parametrize("path", COMMANDS, ids=name)
def test_a_command_is_read_with_every_field_it_was_given(path):
    envelope = codec.read_envelope(path.read_bytes(), ())
    request = commands.read_request(envelope)
    assert request.model_dump(mode="json", exclude_unset=True) == envelope.data
    assert list(definitions.unknown_fields(request)) == []


def test_the_definition_of_a_put_is_read_too():
    put = codec.read_envelope((GOLDEN / "tidewheel.schedule.put.v1" / "1.json").read_bytes(), ())
    schedule, warnings = definitions.read_schedule(put.data["definition"], strict=True)
    assert warnings == ()
    assert schedule.trigger is not None
    assert schedule.trigger.timezone == "Europe/London"


def test_the_sdk_understands_every_hand_out_that_was_ever_written():
    for path in (GOLDEN / "tidewheel.run.handed_out.v1").glob("*.json"):
        handed_out = wire.HandOut.read(orjson.loads(path.read_bytes())["data"])
        assert handed_out.lease == "reports.1.41.9c1185a5c5e9fc54612808977ee8f548"
        assert handed_out.target == {"type": "task", "name": "reports.nightly"}
        assert handed_out.payload == {"day": "2026-03-07"}
        assert handed_out.lease_seconds > 0
