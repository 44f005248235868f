"""The exercises as files: a plain .py file for each, a notebook with all of them, and what to do with them."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

from vizformer.errors import TraceError
from vizformer.exercises.path import TASKS, Exercise, exercise
from vizformer.exercises.task import SENTENCE
from vizformer.messages import N_
from vizformer.web.link.languages import SOURCE

WIDTH = 100  # columns of a text in a file
IMPORTS = """import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor"""
NOTEBOOK = "exercises.ipynb"
OWN = {
    "positions": "positional_encoding",
    "encoder_layer": "encoder_layer",
    "decoder_layer": "decoder_layer",
    "decoding": "beam_search",
}
TITLE = N_("Build it yourself: a Transformer in twelve functions")
INTRODUCTION = N_(
    "Write one function after the other. Each check runs your function, only in this process, on numbers "
    "computed by hand, on random numbers and on those of the model that comes with VizFormer. It names "
    "the first number that differs, by how much, and the known mistakes that give exactly these numbers. "
    "At the end your functions are a Transformer that translates your sentence. VizFormer must be "
    "installed where this runs; it needs no network."
)
START = N_(
    "To start it: Jupyter, `pip install jupyterlab`, then `jupyter lab {notebook}`, where VizFormer is "
    "installed. VS Code: open it and choose the Python that has VizFormer. Colab: upload it and a wheel "
    "of VizFormer, and run `!pip install` with the wheel, or with the address of the repository, in a "
    "cell above. No server is needed: vf.view draws in the cell, and the save method of its result "
    "writes a file for any browser.",
    notebook=NOTEBOOK,
)
END = N_("Your own Transformer")
END_TEXT = N_(
    "Your functions get the weights of the model and translate your sentence; then see where your own "
    "heads attend. OwnTransformer adds the embedding, the order of the layers and the logits: "
    "vizformer/exercises/own_transformer.py."
)


def write(folder: Path, language: str = SOURCE) -> list[Path]:
    """Writes the exercises into a folder; files that are there already, as they would be written, stay.

    Raises:
        TraceError: a file of these names that says something else (nothing is written then), a language that there is
            not, a folder that cannot be written.
    """
    files = {folder / name: text.encode() for name, text in contents(language).items()}
    try:
        kept = [path.name for path, text in files.items() if path.exists() and path.read_bytes() != text]
        if kept:
            raise TraceError(
                "{folder} already contains {name} with other contents. Nothing was written; choose another folder.",
                folder=str(folder),
                name=kept[0],
            )
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_bytes(text)
    except OSError as error:
        raise TraceError("{folder} cannot be written: {reason}.", folder=str(folder), reason=str(error)) from error
    return [*files]


def contents(language: str = SOURCE) -> dict[str, str]:
    """The files by their names.

    Raises:
        TraceError: a language that there is not.
    """
    exercises = [exercise(name, language) for name in TASKS]
    first = exercises[0]
    how = N_(
        "Open a file in an editor, write the function, and run it: {command}. Or open {notebook} in Jupyter, VS Code or "
        "Colab, which has the same exercises. Later files import the functions of earlier ones. How a function can be "
        "written is printed by {solution}.",
        command=f"`python {module(first)}.py`",
        notebook=f"`{NOTEBOOK}`",
        solution='`print(vf.exercise("head").solution)`',
    )
    listed = "\n".join(f"{one.number}. {one.title}: `{module(one)}.py`" for one in exercises)
    readme = (f"# {first.said(TITLE)}", first.said(INTRODUCTION), first.said(how), listed)
    return {
        **{f"{module(one)}.py": _file(one) for one in exercises},
        "own_transformer.py": _own_file(first),
        NOTEBOOK: json.dumps(notebook(exercises), ensure_ascii=False, indent=1) + "\n",
        "README.md": "\n\n".join((*readme, f"{first.said(END)}: `own_transformer.py`")) + "\n",
    }


def module(one: Exercise) -> str:
    """The name of an exercise's file, without .py."""
    return f"exercise_{one.number:02}_{one.task.name}"


def notebook(exercises: list[Exercise]) -> dict[str, Any]:
    first = exercises[0]
    cells = [
        _cell("markdown", f"# {first.said(TITLE)}\n\n{first.said(INTRODUCTION)}\n\n{first.said(START)}"),
        _cell("code", f"{IMPORTS}\n\nimport vizformer as vf"),
    ]
    for one in exercises:
        said, _, symbols = one.statement.partition("\n\n")
        cells += [
            _cell("markdown", f"## {one.number}. {one.title}\n\n{said}\n\n```\n{symbols}\n```"),
            _cell("code", one.stub),
            _cell("code", _check(one)),
        ]
    cells += [
        _cell("markdown", f"## {first.said(END)}\n\n{first.said(END_TEXT)}"),
        _cell("code", f"{_translation(first)}\ntranslation"),
    ]
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 4}


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _file(one: Exercise) -> str:
    used = sorted((exercise(name) for name in one.task.uses), key=module)
    lines = [f"from {module(other)} import {', '.join(other.names)}" for other in used]
    imports = "\n".join(["", *lines, ""]) if lines else ""
    return (
        f'"""{one.number}. {one.title}\n\n{_wrapped(one.statement)}\n\n    python {module(one)}.py\n"""\n\n'
        f"{IMPORTS}\n{imports}\n\n{one.stub}\n\n\n"
        f'if __name__ == "__main__":\n    import vizformer as vf\n\n    print({_check(one)})\n'
    )


def _own_file(first: Exercise) -> str:
    imports = "\n".join(f"from {module(exercise(name))} import {function}" for name, function in OWN.items())
    lines = (
        *_translation(first).splitlines(),
        "print(translation)",
        'translation.view("cross").save("my_attention.html")',
    )
    return (
        f'"""{first.said(END)}\n\n{_wrapped(first.said(END_TEXT))}\n\n    python own_transformer.py\n"""\n\n'
        f'{imports}\n\nif __name__ == "__main__":\n    import vizformer as vf\n\n    ' + "\n    ".join(lines) + "\n"
    )


def _translation(first: Exercise) -> str:
    language = "" if first.language == SOURCE else f', language="{first.language}"'
    own = f"vf.exercises.OwnTransformer({', '.join(OWN.values())}{language})"
    return f'own = {own}\ntranslation = own.translate("{SENTENCE}")'


def _check(one: Exercise) -> str:
    language = "" if one.language == SOURCE else f', "{one.language}"'
    return f'vf.exercise("{one.task.name}"{language}).check({", ".join(one.names)}, text="{SENTENCE}")'


def _wrapped(text: str) -> str:
    """Lines of at most `WIDTH` columns; a Chinese character takes two, and a Chinese sentence begins a line."""
    lines = re.sub(r"。(?=.)", "。\n", text).splitlines()
    wide = [WIDTH // 2 if len(line.encode()) > 1.5 * len(line) else WIDTH for line in lines]
    return "\n".join(map(textwrap.fill, lines, wide))
