"""What can be set: by a file, by the environment (`TIDEWHEEL_…`), by flags. The later wins.

Every field says what it does, its unit and its default; an error names the field.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from schemas import durations, topics

Duration = Annotated[
    timedelta, BeforeValidator(lambda value: durations.parse(value) if isinstance(value, str) else value)
]


class SettingsError(Exception):
    """A setting cannot be used; the text names the field, what was wrong and where it can be set."""


class Settings(BaseSettings):
    """Settings of one process on the embedded log."""

    model_config = SettingsConfigDict(env_prefix="TIDEWHEEL_", extra="forbid", frozen=True)

    data: Path = Field(default=Path("tidewheel-data"), description="Folder of the log, the state and the read model.")
    host: str = Field(default="127.0.0.1", description="Address to listen on; only loopback needs no key.")
    port: int = Field(default=8440, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    durability: Literal["process", "disk"] = Field(
        default="process", description="What survives: `process` a kill, `disk` also a loss of power (slower)."
    )
    partitions: int = Field(default=4, ge=1, le=64, description="Partitions of each role; fixed once data exists.")
    clock_accept_after: Duration = Field(
        default=timedelta(seconds=60), description="How long a clock that jumped is not believed."
    )
    retain_history: Duration = Field(default=timedelta(days=30), description="How long decisions and events are kept.")
    retain_runs: Duration = Field(default=timedelta(days=3), description="How long runs and terminal memory are kept.")
    worker_slots: int = Field(default=10, ge=1, le=10_000, description="Runs that the child workers take at once.")
    log_format: Literal["console", "json"] = Field(default="console", description="How log events are written.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="From which level on log events are written, here and in the child workers."
    )

    @property
    def layout(self) -> topics.Layout:
        """Partition counts."""
        return topics.Layout(schedule=self.partitions, shard=self.partitions)

    @property
    def retention(self) -> topics.Retention:
        """How long each topic is kept."""
        return topics.Retention(history=self.retain_history, runs=self.retain_runs, attempts=self.retain_runs)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- the library passes it; there is no .env file
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- nor a folder of secrets
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags before environment before file."""
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls))


def read(config: Path | None, flags: dict[str, Any]) -> Settings:
    """Settings from a TOML file (when given), the environment and flags (None: not given)."""
    given = {name: value for name, value in flags.items() if value is not None}
    kind = Settings
    if config is not None:
        if not config.is_file():
            raise SettingsError(f"config: there is no file {config}")

        class FromFile(Settings):
            model_config = SettingsConfigDict(toml_file=config)

        kind = FromFile
    try:
        return kind(**given)
    except ValidationError as error:
        lines = (f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors())
        raise SettingsError("; ".join(lines)) from error
