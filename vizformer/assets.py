"""Where the files that travel with the code are: beside the package in a checkout, inside it in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def app_root() -> Path:
    """The folder that holds app.py, pages/ and assets/."""
    packaged = _PACKAGE / "_app"
    return packaged if packaged.is_dir() else _PACKAGE.parent


def asset(*parts: str) -> Path:
    """The path of a bundled file, e.g. `asset("models", "zh-en")`."""
    return app_root().joinpath("assets", *parts)


def bundled_models() -> tuple[str, ...]:
    """The names of the models that come with VizFormer."""
    models = asset("models")
    return tuple(sorted(p.name for p in models.iterdir() if (p / "config.json").is_file())) if models.is_dir() else ()
