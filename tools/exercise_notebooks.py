"""Writes the notebook of the exercises in each language, which the app hands out: `make reference`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main() -> None:
    """Writes assets/exercises/LANGUAGE/exercises.ipynb."""
    from vizformer.assets import asset
    from vizformer.exercises.folder import NOTEBOOK, contents
    from vizformer.web.link.languages import LANGUAGES

    for code in LANGUAGES:
        path = asset("exercises", code, NOTEBOOK)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents(code)[NOTEBOOK], encoding="utf-8")


if __name__ == "__main__":
    main()
