"""Settings: of any file, and any value in it, a process says which field it cannot use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node import settings
from tests.fuzz.budget import examples, no_hang
from tests.fuzz.mutation import HOSTILE

KINDS = (settings.Settings, settings.ClusterSettings)
FIELDS = sorted({name for kind in KINDS for name in kind.model_fields})
WORDS = (
    '""', '"x"', '"\\u0000"', '"a\\nb"', "0", "-1", "9223372036854775808", "1e400", "nan", "inf", "true", "[]",
    '["a", 1]', "{}", "{a = 1}", '{"" = ""}', '{"sasl.password" = "x"}', '{"\\u0000" = "x"}', "2026-01-01",
    "07:30:00", '"PT5S"', '"postgresql://["', '"postgresql://u@h:x/d"', '"host:"', '"[::"', '"a,b"', '"http://["',
    '"scheduler,nobody"',
    f'"{"a" * 5_000}"',
)  # fmt: skip


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in FIELDS:
        monkeypatch.delenv(f"TIDEWHEEL_{name.upper()}", raising=False)


def read(tmp_path: Any, kind: Any, raw: bytes) -> str:
    """What is wrong with a file; nothing when it can be used."""
    (tmp_path / "t.toml").write_bytes(raw)
    with no_hang():
        try:
            settings.read_as(kind, tmp_path / "t.toml", {})
        except settings.SettingsError as error:
            return str(error)
    return ""


@given(st.sampled_from(KINDS), st.sampled_from(FIELDS), st.sampled_from(WORDS))
@examples(100)
def test_a_value_that_cannot_be_used_is_told_with_its_field(tmp_path, kind, field, value):
    said = read(tmp_path, kind, f"{field} = {value}\n".encode())
    assert said == "" or field in said


@given(
    st.sampled_from(KINDS),
    st.binary(max_size=30) | st.sampled_from(HOSTILE).map(lambda t: t.encode("utf-8", "replace")),
)
@examples(40)
def test_a_file_that_is_no_toml_is_told_with_its_name(tmp_path, kind, raw):
    said = read(tmp_path, kind, raw)
    assert said == "" or "t.toml" in said or ":" in said


@pytest.mark.parametrize("raw", [b"port = \n", b"\xff", b"port = 1\nport = 2\n", b"a = [" * 3_000])
def test_a_broken_file_is_a_setting_that_cannot_be_used(tmp_path, raw):
    """It was a traceback."""
    said = read(tmp_path, settings.Settings, raw)
    assert said.startswith(f"config: {tmp_path}/t.toml cannot be read")
