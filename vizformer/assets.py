"""The location of the files that travel with the code: beside the package in a checkout, inside it in a wheel."""

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def app_root() -> Path:
    """The folder that holds app.py, pages/ and assets/."""
    packaged = _PACKAGE / "_app"
    return packaged if packaged.is_dir() else _PACKAGE.parent


def asset(*parts: str) -> Path:
    """The path of a bundled file, e.g. `asset("models", "zh-en")`."""
    return app_root().joinpath("assets", *parts)


@cache
def bundled_models() -> tuple[str, ...]:
    """The names of the models that come with VizFormer; those whose weights were set by hand come last."""
    models = asset("models")
    names = [path.name for path in models.iterdir() if (path / "config.json").is_file()] if models.is_dir() else []
    return tuple(sorted(names, key=lambda name: (name.endswith("-by-hand"), name)))
