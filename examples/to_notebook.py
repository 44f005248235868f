"""Makes the notebooks of the scripts beside them: a heading and a cell for each section.

python examples/to_notebook.py
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TITLES = {
    "transformer_from_scratch": "A Transformer from scratch",
    "tour": "A tour of VizFormer",
    "inspect_your_checkpoint": "Inspect your checkpoint",
    "figure_for_a_paper": "A figure for a paper",
    "heads_of_an_answer": "Which heads does this answer need?",
    "reason_of_a_look": "Why does this head look there?",
    "source_of_an_answer": "Where does the answer come from?",
    "effects_over_prompts": "Does it hold over a set of prompts?",
    "circuit_of_a_task": "Which circuit carries it?",
}
ENTRY = 'if __name__ == "__main__":\n    main()'  # of a script; a notebook calls it with no arguments of its own


def notebook(title: str, source: str) -> dict[str, Any]:
    """The notebook of a script whose sections begin with `# %%`."""
    first, *sections = source.split("\n# %% ")
    introduction, _, imports = first.removeprefix('"""').partition('"""')
    cells = [_cell("markdown", f"# {title}\n\n{introduction.strip()}"), _cell("code", imports)]
    for section in sections:
        heading, _, code = section.partition("\n")
        cells += [_cell("markdown", f"## {heading}"), _cell("code", code.replace(ENTRY, "main([])"))]
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 4}


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def written(name: str) -> str:
    """The file of the notebook of that name."""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    return json.dumps(notebook(TITLES[name], source), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    for each in TITLES:
        (HERE / f"{each}.ipynb").write_text(written(each), encoding="utf-8")
