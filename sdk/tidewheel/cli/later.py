"""Commands that the contract names and this version does not have: refused by name, never unknown."""

from __future__ import annotations

import click


def not_supported(name: str) -> click.Command:
    """A command that is not listed, takes whatever it is given, and refuses."""

    @click.command(
        name,
        hidden=True,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("anything", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def refuse(ctx: click.Context, anything: tuple[str, ...]) -> None:  # noqa: ARG001 -- whatever is asked of it
        raise click.UsageError(f"{ctx.command_path}: not_supported: this version cannot do that yet")

    return refuse


def add(group: click.Group, *names: str) -> None:
    """Let a group refuse these."""
    for name in names:
        group.add_command(not_supported(name))
