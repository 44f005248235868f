"""What each source brings: `python -m recipes.translator.left_out SET SET_WITH_MORE FOLDER`, 80 minutes.

The small model is trained for a tenth of the updates of the bundled one: with everything, without each source, and with
back-translations beside everything.
"""

import json
from pathlib import Path
from typing import Any

import click
import torch

from recipes.translator.measure import measure
from recipes.translator.remake import VOCABULARY, last_entry
from recipes.translator.train import averaged, train

SOURCES = ("grammar", "tatoeba", "coreference", "senses", "dictionary", "names")
MORE = "back_translation"
SAID = {"none": "nothing", MORE: "nothing, and back-translations beside it"}
UPDATES, MOST = 1_050, 200  # of a training; of held-out pairs
RESULTS = Path(__file__).with_suffix(".json")


@click.command()
@click.argument("folder", metavar="SET", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument(
    "back_translated", metavar="SET_WITH_MORE", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.argument("work", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path, back_translated: Path, work: Path) -> None:
    """Train in FOLDER and write beside this file what was measured.

    SET_WITH_MORE is what `back_translation` made of SET.
    """
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for name in ("none", *SOURCES, MORE):
        lines, without = back_translated if name == MORE else folder, (name,) if name in SOURCES else ()
        options: dict[str, Any] = dict(size="small", vocab_size=VOCABULARY, seed=0, bfloat16=False, another_set=False)
        train(lines, work / name, minutes=float("inf"), updates=UPDATES, without=without, **options)
        measured = measure(averaged(work / name), folder, "valid", MOST)
        found[name] = {
            "updates": last_entry(work / name)["updates"],
            **{key: round(x, 1) for key, x in measured.items()},
        }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def table() -> str:
    """The results, a row of Markdown each."""
    found: dict[str, dict[str, float]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    names = ("zh-en BLEU", "en-zh BLEU", "zh-en everyday", "en-zh everyday", "en-zh coreference", "senses")
    rows = [("left out", *names), ("---",) * (1 + len(names))]
    rows += [(SAID.get(name, name), *(f"{one[column]:.1f}" for column in names)) for name, one in found.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
