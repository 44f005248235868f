"""The same in Python: the lines that open the model of a page and run it, which every page's code begins with."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import edits
from vizformer.web.link.model_ref import ModelRef


def loaded(model: ModelRef) -> str:
    """What opens a model: by its name where it has one everywhere, else from a folder that the reader fills in."""
    name = model.id if model.source in ("bundled", "hub") else "path/to/the/model"
    answers = "".join(f", {field}={value!r}" for field, value in model.answers)
    dtype = "" if model.dtype == "float32" else f", dtype={model.dtype!r}"
    return f"vf.load({name!r}{dtype}{answers})"


def opening(subject: Subject, *imports: str) -> list[str]:
    """Imports, `checkpoint` and `trace`: the numbers of the page, with those that were set by hand."""
    given = f", target={subject.target!r}" if subject.target.strip() else ""
    if subject.edited:
        imports = ("from vizformer.model import Cell, Edit", *imports)
        given += f", edit={edits.edit(subject.edited)!r}"
    return [
        "import vizformer as vf",
        *imports,
        "",
        f"checkpoint = {loaded(subject.model)}",
        f"trace = checkpoint.trace({subject.text!r}{given})",
    ]
