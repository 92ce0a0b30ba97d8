"""One server and one worker on a broker, and two topics on it that belong to others."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.kafka.broker import free_port
from tests.storm.fleet import Member
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

TIDEWHEEL = str(Path(sys.executable).parent / "tidewheel")
START_SECONDS = 120  # for two Python processes on two busy cores
PARTITIONS = 4
THEIRS = 5  # partitions of their topics; ours have four


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """Where strangers find what they need to know: brokers, and names of topics."""

    bootstrap: str
    prefix: str
    server: Member
    worker: Member

    @property
    def orders(self) -> str:
        """The topic that speaks for acme."""
        return f"{self.prefix}orders.schedule-changes"

    @property
    def billing(self) -> str:
        """The topic that speaks for beta."""
        return f"{self.prefix}billing"

    def ours(self, name: str) -> str:
        """The full name of a topic of the contract."""
        return f"{self.prefix}tidewheel.{name}"


@contextlib.contextmanager
def opened(folder: Path, bootstrap: str, prefix: str) -> Iterator[House]:
    """A house whose server and worker are ready; afterwards they have ended, the server without complaint."""
    port = free_port(1)
    config = folder / "tidewheel.toml"
    serve = [TIDEWHEEL, "serve", "--config", str(config), "--data", str(folder / "data")]
    work = [TIDEWHEEL, "worker", "tests.strangers.tasks:worker", "--url", f"http://127.0.0.1:{port}"]
    house = House(
        bootstrap=bootstrap, prefix=prefix, server=Member("server", serve, folder / "server.log"),
        worker=Member("worker", work, folder / "worker.log"),
    )  # fmt: skip
    config.write_text(
        f'bootstrap = "{bootstrap}"\nnamespace = "{prefix}"\npartitions = {PARTITIONS}\nport = {port}\n'
        "replication_factor = 1\nmin_insync_replicas = 1\n"
        f'[ingress]\n"{house.orders}" = "acme"\n"{house.billing}" = "beta"\n',
        encoding="utf-8",
    )
    create(house, {house.orders: {"max.message.bytes": "2097152"}, house.billing: {}})
    try:
        house.server.start()
        eventually(lambda: _is_ready(house.server), within=START_SECONDS, what="the server is ready")
        house.worker.start()
        yield house
    finally:
        for member in (house.worker, house.server):
            member.ask_to_stop()
        ended = [member.wait(30) for member in (house.worker, house.server)]
    assert ended == [0, 0], house.server.output.read_text(encoding="utf-8")


def create(house: House, topics: dict[str, dict[str, str]]) -> None:
    """Topics as their owners make them."""
    admin = AdminClient({"bootstrap.servers": house.bootstrap})
    new: list[Any] = [NewTopic(name, THEIRS, 1, config=config) for name, config in topics.items()]
    for made in admin.create_topics(new).values():
        made.result(30)


def delete_records(house: House, topic: str, partition: int, *, before: int) -> None:
    """What a retention does, at once."""
    place = TopicPartition(topic, partition, before)
    admin = AdminClient({"bootstrap.servers": house.bootstrap})
    for deleted in admin.delete_records([place]).values():
        deleted.result(30)


def _is_ready(server: Member) -> bool:
    assert server.is_running, server.output.read_text(encoding="utf-8")
    return server.is_ready()
