"""Commands that other distributions bring."""

from importlib.metadata import EntryPoint, EntryPoints

import click

import tidewheel.cli


@click.command()
def greet():
    """Say hello."""
    click.echo("hello")


def test_a_command_of_another_distribution_works_beside_one_that_is_broken(tidewheel_, monkeypatch):
    plugins = EntryPoints(
        [
            EntryPoint("greet", f"{__name__}:greet", tidewheel.cli.GROUP),
            EntryPoint("broken", "no_such_module:command", tidewheel.cli.GROUP),
        ]
    )
    monkeypatch.setattr(tidewheel.cli, "entry_points", lambda group: plugins)
    assert tidewheel_("greet") == (0, "hello\n", "")
    code, out, err = tidewheel_("--help")
    assert (code, "greet" in out, "broken" in out) == (0, True, False)
    assert err.startswith("warning: command 'broken' of no_such_module:command cannot be loaded")
    assert tidewheel_("broken")[0] == 2
