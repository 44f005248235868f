"""The notebook of the exercises in a reader's language."""

from pathlib import Path

from vizformer.assets import asset
from vizformer.web.link.languages import SOURCE


def notebook(code: str) -> Path:
    """The file in the language `code`; in English where there is none."""
    path = asset("exercises", code, "exercises.ipynb")
    return path if path.is_file() else asset("exercises", SOURCE, "exercises.ipynb")
