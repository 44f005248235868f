"""Models of the operator's own code (`vizformer --model`), loaded before it serves; the terminal says what is wrong."""

import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from vizformer.checkpoints import own_code
from vizformer.errors import VizformerError


def name(said: Iterable[str]) -> None:
    """Writes the code of `--model` into the variable that every process of the server reads, with whole paths.

    A dotted module is found in this folder, also by those processes.

    Raises:
        click.ClickException: no such file.
    """
    with _in_words():
        read = [own_code.Code.read(one) for one in said]
        os.environ[own_code.VARIABLE] = "\n".join(map(str, read))
        if any(not code.is_file for code in read):
            folders = [os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])]
            os.environ["PYTHONPATH"] = os.pathsep.join(folders)
        own_code.named()


def load() -> None:
    """Loads every model that this process is to serve.

    Raises:
        click.ClickException: what the code raises, after its own traceback; a function that is missing or hands back
            something else.
    """
    with _in_words():
        for title, code in own_code.named().items():
            click.echo(f"  {title}: {own_code.checkpoint(code)!r}")


@contextmanager
def _in_words() -> Iterator[None]:
    """An error of ours as one of the command; before it the traceback of the code that raised."""
    try:
        yield
    except VizformerError as error:
        if (cause := error.__cause__) is not None and not isinstance(cause, VizformerError):
            traceback.print_exception(cause, file=sys.stderr)
        raise click.ClickException(str(error)) from error
