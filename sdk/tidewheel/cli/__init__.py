"""The command `tidewheel`.

Commands are imported when they are called. Other distributions add theirs by the entry points `tidewheel.commands`;
one that cannot be imported is named in a warning and takes no other with it.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 unreachable, 4 a plan that is not empty.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from tidewheel.cli import later, output
from tidewheel.errors import TidewheelError, Unreachable

GROUP = "tidewheel.commands"
REFUSED, UNREACHABLE = 1, 3

OWN = {
    "apply": "tidewheel.cli.apply:apply",
    "backfills": "tidewheel.cli.backfills:backfills",
    "breakers": "tidewheel.cli.breakers:breakers",
    "calendars": "tidewheel.cli.calendars:calendars",
    "dead-letters": "tidewheel.cli.dead_letters:dead_letters",
    "events": "tidewheel.cli.events:events",
    "forecast": "tidewheel.cli.forecast:forecast",
    "import": "tidewheel.cli.importing:import_",
    "jobs": "tidewheel.cli.jobs:jobs",
    "preview": "tidewheel.cli.preview:preview",
    "queues": "tidewheel.cli.queues:queues",
    "runs": "tidewheel.cli.runs:runs",
    "schedules": "tidewheel.cli.schedules:schedules",
    "tenants": "tidewheel.cli.tenants:tenants",
    "worker": "tidewheel.cli.worker:worker",
    "workers": "tidewheel.cli.workers:workers",
}
LATER = frozenset({"admin", "serve"})


class Commands(click.Group):
    """Our own commands and those of other distributions; what they raise becomes an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return sorted({*OWN, *_plugins()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- as above
        if cmd_name in OWN:
            module, _, attribute = OWN[cmd_name].partition(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        plugin = _plugins().get(cmd_name)
        if plugin is not None:
            return _load(plugin)
        return later.not_supported(cmd_name) if cmd_name in LATER else None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Unreachable as error:
            output.complain(error)
            if error.status is None:
                click.echo(
                    "Is it running? `tidewheel dev` starts one here; --url or TIDEWHEEL_URL names another.", err=True
                )
            ctx.exit(UNREACHABLE)
        except TidewheelError as error:
            output.complain(error)
            ctx.exit(REFUSED)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tidewheel", prog_name="tidewheel")
def main() -> None:
    """Schedules and jobs, their runs, and the workers that do them.

    Commands talk to TIDEWHEEL_URL (http://127.0.0.1:8440), for TIDEWHEEL_TENANT (default) where a tenant is needed.
    """


def _plugins() -> dict[str, EntryPoint]:
    return {plugin.name: plugin for plugin in entry_points(group=GROUP)}


def _load(plugin: EntryPoint) -> click.Command | None:
    try:
        command = plugin.load()
    except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, the other commands work
        origin = plugin.dist.name if plugin.dist else plugin.value
        click.echo(f"warning: command {plugin.name!r} of {origin} cannot be loaded: {error!r}", err=True)
        return None
    return command if isinstance(command, click.Command) else None
