"""The `vizformer` command: starts the app; its subcommands do the rest.

A subcommand is a short function that imports what it needs when it runs, so that `vizformer --help` stays instant:

    @main.command()
    @click.argument("source")
    def inspect(source: str) -> None:
        \"\"\"Describe a checkpoint.\"\"\"
        from vizformer.checkpoints import load
        ...
"""

import sys
from pathlib import Path
from typing import Any

import click

from vizformer import __version__
from vizformer.errors import VizformerError
from vizformer.serving import FRAMES
from vizformer.serving.listening import HOST, PORT
from vizformer.start import (
    DEVICE,
    HOSTS,
    HUB,
    LEAST_MEMORY,
    MEMORY,
    MODEL,
    MODELS,
    MOST_WORKERS,
    PATHS,
    UPLOAD_LIMIT,
    UPLOADS,
    WORKERS,
    start_app,
)


class _Group(click.Group):
    """Says what `VizformerError` says, without a traceback: it was raised for the person at the keyboard."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except VizformerError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--host",
    default=HOST,
    show_default=True,
    envvar="VIZFORMER_HOST",
    metavar="ADDRESS",
    help="Where to listen. 0.0.0.0 lets other people on your network in.",
)
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    envvar="PORT",
    type=click.IntRange(1, 65535),
    metavar="NUMBER",
    help="The port to listen on; the variable PORT does the same.",
)
@click.option(
    "--models",
    envvar=MODELS,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help=f"A folder of models: every subfolder with a model and every file of weights can be chosen in the app; "
    f"the variable {MODELS} does the same.",
)
@click.option(
    "--model",
    "own",
    multiple=True,
    metavar="FILE:FUNCTION",
    help="A model of your own code, such as my_model.py:load: a file (or a dotted module) and a function in it that returns "
    f"(module, tokenizer); may be given several times. The variable {MODEL} (a line each) does the same.",
)
@click.option(
    "--no-upload",
    is_flag=True,
    help=f"Take no model files from the browser; the variable {UPLOADS}=off does the same. {UPLOAD_LIMIT} (bytes) "
    "bounds an upload.",
)
@click.option(
    "--no-hub",
    is_flag=True,
    help=f"Open no models by their name on a hub, ask nothing of the internet; the variable {HUB}=off does the same.",
)
@click.option(
    "--no-path",
    is_flag=True,
    help=f"Open no models by their path; the variable {PATHS}=off does the same. Without it browsers on this computer "
    "can, as long as --host lets nobody else in.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name by which browsers find this server, e.g. behind a proxy; may be given several times, and "
    "*.example.org is all names below. Addresses, localhost and the machine's own name need none; the variable "
    f"{HOSTS} (with commas) does the same.",
)
@click.option(
    "--allow-frame",
    "frames",
    multiple=True,
    metavar="ORIGIN",
    help="Whose pages may show the app in a frame, e.g. https://school.example; may be given several times. Nobody's "
    f"may without it; the variable {FRAMES} (with commas) does the same.",
)
@click.option(
    "--memory",
    type=click.IntRange(LEAST_MEMORY),
    metavar="MIB",
    help=f"How much may be kept of what was computed, and as much again of converted weights; the variable {MEMORY} "
    "(bytes) does the same. All workers share it.  [default: 320 for each worker, for a machine of 2 GB]",
)
@click.option(
    "--workers",
    "n_workers",
    default=1,
    show_default=True,
    envvar=WORKERS,
    type=click.IntRange(1, MOST_WORKERS),
    metavar="NUMBER",
    help="Server processes, for machines with more cores and for classes: at most one per core. More than one needs "
    f"HAProxy; the variable {WORKERS} does the same.",
)
@click.option(
    "--device",
    envvar=DEVICE,
    metavar="NAME",
    help=f"Where the models compute: cpu, cuda, cuda:1, mps; the variable {DEVICE} does the same.  [default: cpu]",
)
@click.version_option(__version__, prog_name="vizformer")
@click.pass_context
def main(
    ctx: click.Context,
    host: str,
    port: int,
    models: Path | None,
    own: tuple[str, ...],
    no_upload: bool,
    no_hub: bool,
    no_path: bool,
    device: str | None,
    hosts: tuple[str, ...],
    frames: tuple[str, ...],
    memory: int | None,
    n_workers: int,
) -> None:
    """See every number inside a Transformer, for the sentence you typed, and have each one proved.

    Without a command: starts the app and prints its address.
    """
    if ctx.invoked_subcommand is None:
        start_app(
            host,
            port,
            models,
            own=own,
            uploads=not no_upload,
            hub=not no_hub,
            paths=not no_path,
            device=device,
            hosts=hosts,
            frames=frames,
            memory=memory,
            n_workers=n_workers,
        )


@main.command()
@click.argument("source", metavar="PATH")
@click.option("--tensors", is_flag=True, help="List every tensor, also those that are used.")
@click.option(
    "--assume",
    multiple=True,
    metavar="NAME=VALUE",
    help="What bare weights do not say, e.g. --assume n_heads=4; may be given several times.",
)
@click.pass_context
def inspect(ctx: click.Context, source: str, tensors: bool, assume: tuple[str, ...]) -> None:
    """Say what a model folder or a file of weights holds, what becomes of each tensor, what was assumed, and what
    keeps it from opening.
    """
    from vizformer.checkpoints import describe
    from vizformer.checkpoints import inspect as examine
    from vizformer.checkpoints.tensors.memory import DTYPES, available, need, size

    if wrong := [given for given in assume if not given.partition("=")[2]]:
        raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE, e.g. n_heads=4.", param_hint="--assume")
    answers: dict[str, Any] = {name: value for name, __, value in (given.partition("=") for given in assume)}
    if taken := answers.keys() & {"source", "numbers", "config", "mapping"}:
        raise click.BadParameter(f"{min(taken)!r} is no assumption.", param_hint="--assume")
    report = examine(source, **answers)
    click.echo(describe(report, every_tensor=tensors))
    amounts = (f"{name} {size(need(report, dtype).total)}" for name, dtype in DTYPES.items())
    free = "" if (free_now := available()) is None else f"; {size(free_now)} are free"
    click.echo(f"\nMemory, beside what stays mapped to the file, with a text: {', '.join(amounts)}{free}")
    if report.problems:
        ctx.exit(1)


@main.command()
@click.argument("model", metavar="CHECKPOINT")
@click.option(
    "--texts",
    default="en",
    show_default=True,
    metavar="FILE",
    help="A text file, one text a line (a model that translates: text, tab, translation); or en or zh, which come with "
    "VizFormer.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("heads.csv"),
    show_default=True,
    help="Where the table goes: a name that ends in .csv or .parquet.",
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs", "heads"),
    show_default=True,
    help="Where the sums are kept, by model and texts.",
)
@click.option("--threads", type=click.IntRange(1), help="Texts that are measured at once.  [default: one per core]")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Have the workers of a Dask cluster measure, each of which opens the same model by the same name: the address "
    "of its scheduler, as tcp://10.0.0.1:8786. Needs vizformer[cluster].",
)
@click.option("--device", default="cpu", show_default=True, help="Where the model computes.")
@click.option("--dtype", default="float32", show_default=True, help="What it computes in.")
def heads(
    model: str, texts: str, out: Path, work: Path, threads: int | None, scheduler: str | None, device: str, dtype: str
) -> None:
    """Measure what every attention head of a model does on many texts: one row a head.

    Stopped or killed, the same command goes on where it was, to the same result; also on a cluster, whose workers may
    come and go.
    """
    from vizformer.analysis.corpus_heads.cluster import Cluster
    from vizformer.analysis.corpus_heads.corpus import BUNDLED, MOST_CHARACTERS, bundled_corpus, read_texts
    from vizformer.analysis.corpus_heads.report import check_name
    from vizformer.analysis.corpus_heads.running import head_report
    from vizformer.checkpoints import load

    check_name(out)
    corpus = bundled_corpus(texts) if texts in BUNDLED else read_texts(Path(texts))

    def tell(done: int, texts: int) -> None:
        on_one_line = sys.stderr.isatty()
        said = f"{done} of {texts} texts"
        click.echo(f"\r{said}" if on_one_line else said, err=True, nl=done == texts or not on_one_line)

    if scheduler is not None and threads is not None:
        raise click.UsageError("--threads is of this machine alone: leave it out, or --scheduler.")
    checkpoint = load(model, device=device, dtype=dtype)
    hands = None if scheduler is None else Cluster(scheduler, model, checkpoint, corpus.passages)
    if hands is not None:
        told = (
            f"{n} worker{'s' if n > 1 else ''}"
            if (n := hands.workers)
            else f"no worker yet; one is started by `dask worker {scheduler}`"
        )
        click.echo(f"{scheduler}: {told}", err=True)
    report = head_report(checkpoint, corpus, work=work, threads=threads, hands=hands, tell=tell)
    assert report is not None  # nothing stops it
    report.save(out)
    unread = "" if report.texts == report.given else f" ({report.given - report.texts} others it cannot read)"
    cut = f"; {corpus.cut} of them cut at {MOST_CHARACTERS:,} characters" if corpus.cut else ""
    click.echo(f"{len(report.rows())} heads, measured on {report.texts} texts{unread}{cut}: {out}")


@main.command()
@click.argument("out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
def page(out: Path) -> None:
    """Write the first page as one HTML file that needs no server: three sentences, every head, every bar, the proofs.

    Any browser opens it, and nothing leaves it: for a web site, a mail, a lesson without a network.
    """
    from vizformer.web.catalogue.subject import Subject
    from vizformer.web.pages.start import EXAMPLES
    from vizformer.web.widgets.whole_model import saved_page

    made = saved_page.html([Subject(model, text, "") for __, model, text in EXAMPLES], every=True, writes=True)
    out.write_text(made, encoding="utf-8")
    click.echo(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--language", default="en", show_default=True, metavar="NAME", help="en or zh: in which it is told.")
def exercises(folder: Path, language: str) -> None:
    """Lay out twelve exercises: files and a notebook, each with a function of a Transformer to be written, and its check.

    What you write runs on your computer when you run it, and nowhere else.
    """
    from vizformer.exercises.folder import write

    first, *_ = paths = write(folder, language)
    click.echo(f"{len(paths)} files in {folder}. Begin with {first.name}, or open exercises.ipynb.")
