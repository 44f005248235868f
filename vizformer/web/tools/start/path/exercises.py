"""What the reader builds herself at a station, out of the notebook of the exercises.

The notebook is a file of the app's: no page can come to the room of the exercises, which runs the functions of its readers.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from vizformer.components.stations import Exercise
from vizformer.web.words.exercise_notebook import notebook

EXERCISES: Mapping[str, tuple[str, ...]] = {
    "places": ("positions",),
    "softmax": ("softmax",),
    "heads": ("head", "split_join"),
    "layer": ("add_norm", "feedforward", "encoder_layer"),
    "cross": ("cross_attention", "decoder_layer"),
    "writing": ("decoding",),
    "loss": ("loss", "training"),
}
"""By the name of a station, by their names in the notebook."""
LONGEST_TEXT = 200  # characters
_SAID = re.compile(r"## (?P<number>\d+)\. (?P<title>.*)\n\n(?P<text>.*)\n\n```\n(?P<symbols>.*)\n```", re.DOTALL)


def of_station(name: str, code: str, text: str) -> tuple[Exercise, ...]:
    """Those of a station, in the language `code`; what is written is checked on `text`, if a line of code can hold it."""
    found = [_exercises(code)[one] for one in EXERCISES.get(name, ())]
    if len(text) > LONGEST_TEXT:
        return tuple(found)
    on = f"text={json.dumps(text, ensure_ascii=False)})"
    return tuple(replace(one, code=re.sub(r'text="[^"]*"\)$', lambda _: on, one.code)) for one in found)


@cache
def _exercises(code: str) -> dict[str, Exercise]:
    cells = json.loads(notebook(code).read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    made = {}
    for said, stub, check in zip(texts, texts[1:], texts[2:], strict=False):
        if (told := _SAID.fullmatch(said)) and (named := re.match(r'vf\.exercise\("(\w+)"', check)):
            written = f"{texts[1]}\n\n\n{stub}\n\n\n{check}"
            made[named[1]] = Exercise(f"{told['number']} · {told['title']}", told["text"], told["symbols"], written)
    return made
