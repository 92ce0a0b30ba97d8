"""What the audit says of a log that was written by hand."""

from node.audit import audit
from node.audit.report import Report
from node.audit.source import LogSource
from tests.audit.world import World


def report(world: World) -> Report:
    return audit(LogSource(world.log))


def found(world: World) -> list[tuple[str, str, str]]:
    offenders = report(world).offenders
    return [(kind, each.what, each.detail) for kind, named in offenders.items() for each in named]
