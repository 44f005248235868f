"""Makes transformer_from_scratch.ipynb of transformer_from_scratch.py: a heading and a cell for each section.

python examples/to_notebook.py
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPT, NOTEBOOK = HERE / "transformer_from_scratch.py", HERE / "transformer_from_scratch.ipynb"
ENTRY = 'if __name__ == "__main__":\n    main()'  # of a script; a notebook calls it with no arguments of its own


def notebook(source: str) -> dict[str, Any]:
    """The notebook of a script whose sections begin with `# %%`."""
    first, *sections = source.split("\n# %% ")
    introduction, _, imports = first.removeprefix('"""').partition('"""')
    cells = [_cell("markdown", "# A Transformer from scratch\n\n" + introduction.strip()), _cell("code", imports)]
    for section in sections:
        title, _, code = section.partition("\n")
        cells += [_cell("markdown", f"## {title}"), _cell("code", code.replace(ENTRY, "main([])"))]
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 4}


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def written() -> str:
    """The notebook's file."""
    return json.dumps(notebook(SCRIPT.read_text(encoding="utf-8")), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(written(), encoding="utf-8")
