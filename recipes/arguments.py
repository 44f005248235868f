"""The arguments of a recipe, and how it ends on a mistake in them."""

import sys
from pathlib import Path

import click

from vizformer.errors import VizformerError


class Command(click.Command):
    """Says what `VizformerError` says, without a traceback: it was raised for the person at the keyboard."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except VizformerError as error:
            raise click.ClickException(str(error)) from error


def paths(count: int, usage: str | None) -> list[Path]:
    """What stands behind the command: paths, as many as its docstring has.

    Raises:
        SystemExit: there are more or fewer; it says how the recipe is used.
    """
    if len(sys.argv) != count + 1:
        sys.exit(usage)
    return [Path(text) for text in sys.argv[1:]]
