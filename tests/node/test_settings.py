"""Settings: a file, the environment, flags; the later wins, and an error names the field."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from node.settings import ClusterSettings, SettingsError, read, read_as

if TYPE_CHECKING:
    from pathlib import Path


def test_without_anything_the_defaults_hold() -> None:
    settings = read(None, {})
    assert (settings.host, settings.port, settings.partitions) == ("127.0.0.1", 8440, 4)
    assert settings.retention.history == timedelta(days=30)


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tidewheel.toml"
    file.write_text('port = 1001\nhost = "127.0.0.2"\nretain_history = "7d"\n', encoding="utf-8")
    monkeypatch.setenv("TIDEWHEEL_PORT", "1002")
    assert read(file, {}).port == 1002
    settings = read(file, {"port": 1003, "host": None})
    assert (settings.port, settings.host, settings.retain_history) == (1003, "127.0.0.2", timedelta(days=7))


@pytest.mark.parametrize(
    ("flags", "named"),
    [({"port": 99999}, "port"), ({"partitions": 0}, "partitions"), ({"durability": "none"}, "durability")],
)
def test_a_wrong_value_is_refused_by_name(flags: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError, match=f"^{named}: "):
        read(None, flags)


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("rows.db", "is no URL of a database, as postgresql://user@host/database is one"),
        ("mysql://user:secret@host/rows", "mysql is not supported; sqlite and postgresql are"),
        ("postgresql://user:secret@host", "PostgreSQL needs a database, as in postgresql://user@host/tidewheel"),
        ("postgresql://host:port/rows", "is no URL of a database, as postgresql://user@host/database is one"),
        ("sqlite://", "SQLite needs a file, as in sqlite:////var/lib/tidewheel/read-model.sqlite"),
    ],
)
def test_a_read_model_that_cannot_be_is_refused_and_no_password_is_told(url: str, wrong: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        read(None, {"read_model": url})
    assert str(refusal.value) == f"read_model: {wrong}"


def test_the_read_model_is_a_file_in_the_data_folder_unless_told_otherwise(tmp_path: Path) -> None:
    url = "postgresql://user:secret@host/rows"
    assert read(None, {"data": tmp_path}).model_url == f"sqlite:///{tmp_path}/read-model.sqlite"
    settings = read(None, {"data": tmp_path, "read_model": url})
    assert settings.model_url == url
    assert "secret" not in repr(settings)


@pytest.mark.parametrize("host", ["127.0.0.2", "::1", "localhost"])
def test_on_loopback_nobody_needs_a_key(host: str) -> None:
    assert read(None, {"host": host}).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "scheduler.example"])
def test_what_others_can_reach_is_listened_on_only_when_told_to_trust_them(host: str) -> None:
    with pytest.raises(SettingsError, match=rf"^host: {host} .* set trusted_network$"):
        read(None, {"host": host})
    assert read(None, {"host": host, "trusted_network": True}).host == host


def test_an_unknown_name_in_the_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tidewheel.toml"
    file.write_text("prot = 1\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"^prot: "):
        read(file, {})


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no file"):
        read(tmp_path / "none.toml", {})


def test_roles_are_a_list_in_a_file_and_names_separated_by_commas_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tidewheel.toml"
    file.write_text('roles = ["api", "worker"]\n[kafka]\n"security.protocol" = "SSL"\n', encoding="utf-8")
    from_file = read_as(ClusterSettings, file, {})
    assert from_file.roles == ("api", "worker")
    assert from_file.kafka == {"security.protocol": "SSL"}
    monkeypatch.setenv("TIDEWHEEL_ROLES", "scheduler, api")
    assert read_as(ClusterSettings, None, {}).roles == ("scheduler", "api")
    assert read_as(ClusterSettings, None, {"roles": "dispatcher"}).roles == ("dispatcher",)


def test_a_role_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SettingsError, match=r"^roles\.1: .*'scheduler', 'dispatcher', 'projector', 'api' or 'worker'"):
        read_as(ClusterSettings, None, {"roles": "api,clock"})


def test_on_kafka_a_role_has_twelve_partitions_unless_told_otherwise() -> None:
    assert read_as(ClusterSettings, None, {}).layout.schedule == 12
