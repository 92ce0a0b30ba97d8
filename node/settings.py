"""What can be set: by a file, by the environment (`TIDEWHEEL_…`), by flags. The later wins.

Every field says what it does, its unit and its default; an error names the field.
"""

from __future__ import annotations

import re
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from runtime.logs.kafka.settings import KafkaSettings
from schemas import durations, identity, rates, topics

Duration = Annotated[
    timedelta, BeforeValidator(lambda value: durations.parse(value) if isinstance(value, str) else value)
]


Role = Literal["scheduler", "dispatcher", "projector", "api", "worker"]
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")  # as Kafka has it
ROLES: tuple[Role, ...] = ("scheduler", "dispatcher", "projector", "api")  # `worker` has to be told which tasks


def _read_rate(text: str) -> str:
    rates.parse(text)
    return text


def _read_roles(value: Any) -> Any:
    """A list, or names separated by commas as a flag or the environment has them."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Roles = Annotated[tuple[Role, ...], NoDecode, BeforeValidator(_read_roles)]


class SettingsError(Exception):
    """A setting cannot be used; the text names the field, what was wrong and where it can be set."""


class NodeSettings(BaseSettings):
    """What can be set for any process."""

    model_config = SettingsConfigDict(env_prefix="TIDEWHEEL_", extra="forbid", frozen=True)

    data: Path = Field(default=Path("tidewheel-data"), description="Folder of what this process keeps.")
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8440, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    trusted_network: bool = Field(
        default=False, description="Listen beyond loopback although there are no keys: who reaches the port may do all."
    )
    partitions: int = Field(default=4, ge=1, le=64, description="Partitions of each role; fixed once data exists.")
    read_model: str = Field(
        default="",
        repr=False,  # it may hold a password
        description="URL of the database that questions are answered from: `postgresql://user@host/database`, one that "
        "nodes share and nobody else uses; by default SQLite in `data`.",
    )
    require_declared: bool = Field(
        default=False, description="Refuse, at the API, what names a tenant or a queue that nobody has declared."
    )
    retain_history: Duration = Field(default=timedelta(days=30), description="How long decisions and events are kept.")
    retain_runs: Duration = Field(default=timedelta(days=3), description="How long runs and terminal memory are kept.")
    catch_up_rate: Annotated[str, AfterValidator(_read_rate)] = Field(
        default="100/s", description="How many missed runs of one tenant a scheduler partition releases in a time."
    )
    worker_slots: int = Field(default=10, ge=1, le=10_000, description="Runs that the child workers take at once.")
    log_format: Literal["console", "json"] = Field(default="console", description="How log events are written.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="From which level on log events are written, here and in the child workers."
    )

    @field_validator("read_model")
    @classmethod
    def _name_a_database(cls, url: str) -> str:
        if url:
            from projections.store.database import dialect_of  # noqa: PLC0415 -- a second of imports, for a URL alone

            dialect_of(url)
        return url

    @model_validator(mode="after")
    def _listen_only_where_it_is_safe(self) -> Self:
        if self.trusted_network or self.host == "localhost":
            return self
        try:
            safe = ip_address(self.host).is_loopback
        except ValueError:
            safe = False
        if not safe:
            message = (
                f"host: {self.host} can be reached from elsewhere and there are no keys yet; listen on 127.0.0.1 "
                "behind a proxy that knows who asks, or set trusted_network"
            )
            raise ValueError(message)
        return self

    @property
    def model_url(self) -> str:
        """The database of the read model."""
        return self.read_model or f"sqlite:///{self.data / 'read-model.sqlite'}"

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


class Settings(NodeSettings):
    """Settings of one process on the embedded log."""

    durability: Literal["process", "disk"] = Field(
        default="process", description="What survives: `process` a kill, `disk` also a loss of power (slower)."
    )
    clock_accept_after: Duration = Field(
        default=timedelta(seconds=60), description="How long a clock that jumped is not believed."
    )


class ClusterSettings(NodeSettings):
    """Settings of one process on Kafka."""

    roles: Roles = Field(default=ROLES, description="What this process does, separated by commas.")
    processes: int = Field(default=1, ge=1, le=64, description="Processes that do it, side by side on this machine.")
    partitions: int = Field(default=12, ge=1, le=1024, description="Partitions of each role; fixed once topics exist.")
    bootstrap: str = Field(default="127.0.0.1:9092", description="Brokers to ask first, `host:port` by commas.")
    namespace: str = Field(
        default="", description="Stands before all names of topics, groups and producers, to share a cluster."
    )
    replication_factor: int = Field(default=3, ge=1, le=9, description="Copies of each partition of a new topic.")
    min_insync_replicas: int = Field(default=2, ge=1, le=9, description="Copies that must have a record of it.")
    session_timeout: Duration = Field(
        default=timedelta(seconds=6), description="After how long a silence the group gives our partitions away."
    )
    plaintext: bool = Field(default=False, description="Speak to brokers elsewhere without encryption.")
    kafka: dict[str, str] = Field(
        default_factory=dict, description="How to be let in, as librdkafka calls it: `security.*`, `sasl.*`, `ssl.*`."
    )
    ingress: dict[str, str] = Field(
        default_factory=dict,
        description="Topics of others, by their full names, and the one tenant that each speaks for; the scheduler's.",
    )
    api_url: str = Field(
        default="http://127.0.0.1:8440", description="Where workers find an API, in a process that has none itself."
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65_471,
        description="Port for `/metrics` alone, also without an API; each process takes the next one; 0: none.",
    )
    node_id: str = Field(
        default="", pattern=r"^[A-Za-z0-9._-]{0,64}$", description="Name of this node; by default made once and kept."
    )

    @field_validator("ingress")
    @classmethod
    def _bind_topics_to_tenants(cls, bound: dict[str, str]) -> dict[str, str]:
        for topic, tenant in bound.items():
            if not TOPIC.fullmatch(topic):
                raise ValueError(f"{topic[:300]!r} is no topic: at most 249 of A-Z a-z 0-9 . _ -")
            if not identity.is_name(tenant):
                raise ValueError(f"{topic}: {tenant!r} is no tenant: at most 128 of A-Z a-z 0-9 . _ -")
        return bound

    @model_validator(mode="after")
    def _never_bind_what_is_ours(self) -> Self:
        for topic in self.ingress:
            if topic.startswith(self.namespace + topics.PREFIX):
                raise ValueError(f"ingress: {topic} is a topic of Tidewheel itself; bind one that others write to")
        return self

    @property
    def log(self) -> KafkaSettings:
        """How the brokers are reached, and how topics are made there."""
        return KafkaSettings(
            bootstrap=self.bootstrap, namespace=self.namespace, replication_factor=self.replication_factor,
            min_insync_replicas=self.min_insync_replicas, session_timeout=self.session_timeout,
            plaintext=self.plaintext, properties=self.kafka,
        )  # fmt: skip

    def for_one_more(self) -> Self:
        """Of several processes the first alone has the API and the workers: a port can be had once."""
        return self.model_copy(update={"roles": tuple(role for role in self.roles if role not in {"api", "worker"})})

    def does(self, role: Role) -> bool:
        """Whether this process has the role."""
        return role in self.roles


T = TypeVar("T", bound=NodeSettings)


def read(config: Path | None, flags: dict[str, Any]) -> Settings:
    """Settings of `dev`; see `read_as`."""
    return read_as(Settings, config, flags)


def read_as(kind: type[T], config: Path | None, flags: dict[str, Any]) -> T:
    """Settings from a TOML file (when given), the environment and flags (None: not given)."""
    given = {name: value for name, value in flags.items() if value is not None}
    if config is not None:
        if not config.is_file():
            raise SettingsError(f"config: there is no file {config}")
        kind = type(kind.__name__, (kind,), {"model_config": SettingsConfigDict(toml_file=config)})
    try:
        return kind(**given)
    except ValidationError as error:
        raise SettingsError("; ".join(map(_line, error.errors()))) from error
    except (OSError, ValueError, RecursionError) as error:  # of the file: its syntax, its bytes, its rights, its depth
        raise SettingsError(f"config: {config} cannot be read as TOML: {error}") from error


def _line(detail: Any) -> str:
    """The field, and what is wrong with it; a rule about several names its field itself."""
    message = detail["msg"].removeprefix("Value error, ")
    return f"{'.'.join(map(str, detail['loc']))}: {message}" if detail["loc"] else message
