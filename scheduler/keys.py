"""What names a state and its rows: keys of a partition, rows of a key."""

from __future__ import annotations

# A key's rows, in byte order:
MAIN = b"s"  # the state itself
DELAYED = b"a/"  # + number                    a command that waits
BACKFILLED = b"b/"  # + backfill/run id          an open run of a backfill
AWAITED = b"m/"  # + nominal                   an occurrence that waits for what others were due
COMMAND = b"c/"  # + digest                    a command that was answered
COMMAND_AT = b"d/"  # + instant, digest        the same, by age
ENDED = b"e/"  # + version                     when a version ended whose record still stands on `versions`
FILLS = b"h/"  # + bucket number              what backfills made of the occurrences of a few minutes
JOB = b"j/"  # + tenant/name (PARTITION)       an adopted job
ADOPTED = b"p/"  # + role-partition (PARTITION) the last transaction of that owner whose catalog record is adopted
EDGE = b"f/"  # + upstream                     a schedule that this one follows
PACE = b"g/"  # + tenant (PARTITION)           when the tenant's next turn to catch up is
PACED = b"o/"  # + nominal                     an occurrence of the backlog behind the first one
HELD = b"i/"  # + tenant/name (PARTITION)      until when a freeze holds something of that schedule
LEDGER = b"l/"  # + first nominal              older segments of the ledger
LISTENER = b"y/"  # + downstream               a schedule that follows this one
NOTED = b"n/"  # + number                      what an upstream's run leads to, not decided yet
QUESTION = b"q/"  # + downstream/nominal       whether a window of this schedule is met
QUESTION_DUE = b"u/"  # + end, downstream/nominal  the same, to be judged when all up to there is decided
QUESTION_STUCK = b"z/"  # + nominal, downstream/nominal  the same, until that occurrence has another fate
RUN = b"r/"  # + run id                        a run without an outcome, whole
VERSION = b"v/"  # + version                   a definition that still decides occurrences
SHARDED = b"S/"  # + queue (PARTITION)         the most shards that the queue ever had, where those were several
SKIP = b"k/"  # + nominal                      an occurrence that is to have no run
REFERENCE = b"x/"  # + kind/tenant/name (PARTITION) an adopted calendar, queue or tenant
TZ_RULES = b"t"  # (PARTITION)                  what the adopted tz database says of each zone
TRIGGER = b"t/"  # + number                    the same, waiting for a run to end
WAITING = b"w/"  # + nominal                   an occurrence that waits behind the first one

# What a key begins with, by what it is of.
KINDS = {"schedule": "s", "job": "j", "calendar": "c", "queue": "q", "tenant": "t"}
SCHEDULES = KINDS["schedule"]
KIND_OF = {letter: kind for kind, letter in KINDS.items()}


def schedule(tenant: str, name: str) -> bytes:
    """The key of a schedule."""
    return f"{SCHEDULES}/{tenant}/{name}".encode()


def of(kind: str, tenant: str, name: str) -> bytes:
    """The key of a schedule, or of a reference definition at its owner."""
    return f"{KINDS[kind]}/{tenant}/{name}".encode()


def adopted(kind: str, tenant: str, name: str) -> bytes:
    """The row of an adopted definition (PARTITION)."""
    return JOB + f"{tenant}/{name}".encode() if kind == "job" else REFERENCE + f"{kind}/{tenant}/{name}".encode()


def parts(key: bytes) -> tuple[str, str, str]:
    """Kind, tenant and name of a key."""
    kind, tenant, name = key.decode().split("/")
    return kind, tenant, name


def tenant(key: bytes) -> bytes:
    """The tenant of a key."""
    return key.split(b"/", 2)[1]


def number(row: bytes, value: int) -> bytes:
    """A row named by a number; they sort as the numbers do."""
    return row + value.to_bytes(8, "big")


def end_of(row: bytes) -> bytes:
    """The first name behind all that begin with `row`."""
    return row[:-1] + bytes((row[-1] + 1,))
