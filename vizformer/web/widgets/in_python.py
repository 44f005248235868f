"""The lines of Python that open the model of a page and run it; the code of every page begins with them."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from vizformer.analysis import Kind, site_name
from vizformer.explain.head_code import NotWrittenError, in_torch, in_transformers
from vizformer.web.catalogue import model_cache, named_code
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import edits
from vizformer.web.link.model_ref import USUAL_DTYPE, ModelRef
from vizformer.web.words.i18n import show_note, translate

ELSEWHERE = "path/to/the/model"  # a folder that the reader fills in


def show(lines: Sequence[str]) -> None:
    show_note("The same in Python")
    st.code("\n".join(lines), language="python", wrap_lines=True)


def loaded(model: ModelRef, path: str = ELSEWHERE) -> str:
    """The Python expression that opens a model: by its public name, or from a path that the reader fills in."""
    if model_cache.is_code(model):
        return f"vf.wrap(*{named_code.code(model).function}(), name={model.name!r})"
    name = model.id if model.source in ("bundled", "hub") else path
    answers = "".join(f", {field}={value!r}" for field, value in model.answers)
    dtype = "" if model.dtype == "float32" else f", dtype={model.dtype!r}"
    return f"vf.load({name!r}{dtype}{answers})"


def imports(*models: ModelRef) -> list[str]:
    """What `loaded` needs: this package, and the functions that hand out models of the server's own code."""
    codes = [named_code.code(one) for one in models if model_cache.is_code(one)]
    own = [f"from {Path(a.place).stem if a.is_file else a.place} import {a.function.partition('.')[0]}" for a in codes]
    return ["import vizformer as vf", *dict.fromkeys(own)]


def name_and_revision(model: ModelRef) -> tuple[str, str]:
    """What `from_pretrained` of `transformers` is given: the name, and the revision as a further argument."""
    if model.source != "hub":
        return ELSEWHERE, ""
    return model.name, f", revision={model.revision!r}" if model.revision else ""


def opening(subject: Subject, *more: str) -> list[str]:
    """Imports, `checkpoint` and `trace`: the numbers of the page, with those that were set by hand."""
    given = f", target={subject.target!r}" if subject.target.strip() else ""
    if subject.edited:
        more = ("from vizformer.model import Cell, Edit", *more)
        given += f", edit={edits.edit(subject.edited)!r}"
    return [
        *imports(subject.model),
        *more,
        "",
        f"checkpoint = {loaded(subject.model)}",
        f"trace = checkpoint.trace({subject.text!r}{given})",
    ]


def of_head(subject: Subject, kind: Kind, layer: int, head: int) -> dict[str, str]:
    """The pattern of a head in Python, by what one needs for it; in the place of code there may be a sentence why not.

    With this package always; with nothing but torch for a model in our format, with `transformers` for one of a family of
    its. Both show the numbers of the model alone: not those set by hand, and not those of another precision.
    """
    site = site_name(kind, layer)
    found = {
        "vizformer": "\n".join([*opening(subject), f"pattern = trace[{site!r}].pattern({head})", "print(pattern)"])
    }
    model, written = subject.model, model_cache.written_as(subject.model)
    if subject.edited or model.dtype != USUAL_DTYPE:
        return found
    tokens = subject.trace.tokens
    ids = {stack: [token.id for token in read] for stack, read in tokens.items()}
    segments = subject.checkpoint.segments(next(iter(tokens.values())))
    rows = () if segments is None else segments[0].tolist()
    if written == "vizformer":
        folder = f"assets/models/{model.name}" if model.source == "bundled" else ELSEWHERE
        try:
            found["torch"] = in_torch(subject.config, ids, site, head, f"{folder}/model.safetensors", segments=rows)
        except NotWrittenError as error:
            found["torch"] = f"# {translate(error.message)}"
    elif written == "hugging-face":
        name, revision = (model.name, model.revision) if model.source == "hub" else (ELSEWHERE, "")
        found["transformers"] = in_transformers(name, ids, site, head, revision=revision, segments=rows)
    return found
