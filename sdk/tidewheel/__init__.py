"""What users install: the worker, the client and the command line of Tidewheel.

    from tidewheel import Client, RunContext, Worker

A `Worker` runs registered tasks for a queue; it needs nothing but HTTP to the server, or else Kafka itself. A `Client`
puts schedules and jobs and asks what became of their runs. The command `tidewheel` does both from a terminal.

    worker.py      the public worker: tasks, signals, embedding
      session.py     its conversation with the queue's owner: prompt reports, post, fencing, drain
      transport.py   the way to the owner, a port; transports/ has it through the server's API and through Kafka
      holdings.py    what it holds and has yet to say, without I/O
      attempts.py    tasks under way, in the loop, in threads and, by isolated.py, in processes of their own
    logs/          what runs write, captured for each attempt, bounded, without its secrets
    targets/       commands and HTTP endpoints, for runs that need no Python
    testing.py     a task's run without any server, for tests
    client.py      the HTTP API as methods
    cli/           the command line; other distributions add commands by the entry points `tidewheel.commands`
    importers/     other systems' schedules as our definitions

A worker that dies loses nothing but time: its leases end on the server and its runs are handed out again, saying so.
"""

from tidewheel.brokers import Kafka
from tidewheel.client import ALL_TENANTS, Client
from tidewheel.context import DataInterval, RunContext
from tidewheel.errors import (
    KafkaUnusable,
    PayloadMisfit,
    RunCancelled,
    TidewheelError,
    Unreachable,
    WorkerReplaced,
    WorkerStuck,
)
from tidewheel.logs.settings import Logs
from tidewheel.wire import Fault
from tidewheel.worker import Worker

__all__ = [
    "ALL_TENANTS",
    "Client",
    "DataInterval",
    "Fault",
    "Kafka",
    "KafkaUnusable",
    "Logs",
    "PayloadMisfit",
    "RunCancelled",
    "RunContext",
    "TidewheelError",
    "Unreachable",
    "Worker",
    "WorkerReplaced",
    "WorkerStuck",
]
