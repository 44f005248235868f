"""The arguments of a recipe: paths, as many as the command in its docstring has."""

import sys
from pathlib import Path


def paths(count: int, usage: str | None) -> list[Path]:
    """What stands behind the command.

    Raises:
        SystemExit: there are more or fewer; it says how the recipe is used.
    """
    if len(sys.argv) != count + 1:
        sys.exit(usage)
    return [Path(text) for text in sys.argv[1:]]
