"""A page without a server: runs of the whole model, with all that the picture asks for, in several languages.

    to_html([Run("zh-en", "I have a cat.", {"": Picture(...)}, {"encoder/0/1": b"..."})], {"en": Said(...)})

What the picture of the first page asks its server for, by address, lies in the file (`Run.answers`), packed.
"""

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vizformer.components import _mount, whole_model_picture
from vizformer.components.whole_model_picture import Picture
from vizformer.word_tables import spoken, words_of

ENGLISH: Mapping[str, str] = words_of(__file__)
_ENTRY = "saved_runs"


@dataclass(frozen=True)
class Run:
    """A text in a model.

    Attributes:
        name, text: what the choice of it says.
        pictures: "" is the run itself, "row/token" what it becomes when that token is written after that row.
        answers: what a server would answer, by addresses that begin with `Picture.addresses`: a file of tensors, or what
            becomes JSON.
    """

    name: str
    text: str
    pictures: Mapping[str, Picture] = field(repr=False)
    answers: Mapping[str, bytes | dict[str, Any]] = field(repr=False)


@dataclass(frozen=True)
class Said:
    """What the page says in one language, which has a `name` in itself.

    `positions` are those of each run's model in words; `glosses` what tokens of each run mean.
    """

    name: str
    positions: Sequence[str]
    glosses: Sequence[Mapping[str, str]]
    page: Mapping[str, str] = field(default_factory=lambda: spoken(ENGLISH))
    picture: Mapping[str, str] = field(default_factory=lambda: spoken(whole_model_picture.ENGLISH))


def to_html(runs: Sequence[Run], languages: Mapping[str, Said], *, first: str = "en") -> _mount.Html:
    """The page, for browsers since 2023 (which unpack gzip themselves).

    `first`: its language where the reader's browser asks for none of them.
    """
    content = {
        "runs": [
            {
                "name": run.name,
                "text": run.text,
                "pictures": {key: _picture(picture) for key, picture in run.pictures.items()},
                "answers": {
                    address: base64.b64encode(one).decode() if isinstance(one, bytes) else one
                    for address, one in run.answers.items()
                },
            }
            for run in runs
        ],
        "languages": {
            code: {
                "name": said.name,
                "page": said.page,
                "picture": said.picture,
                "runs": [
                    {"positions": positions, "glosses": glosses}
                    for positions, glosses in zip(said.positions, said.glosses, strict=True)
                ],
            }
            for code, said in languages.items()
        },
    }
    packed = gzip.compress(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(), 9, mtime=0)
    style = "\n".join((_mount.style_of(whole_model_picture.ENTRY), _mount.style_of(_ENTRY, common=False)))
    data = {"packed": base64.b64encode(packed).decode(), "language": first}
    return _mount.page_of(_ENTRY, style, data, title="VizFormer", language=first.replace("_", "-"))


def _picture(picture: Picture) -> dict[str, Any]:
    """A picture as its script reads it; of a long text the answers hold the queries that are drawn."""
    data, columns = whole_model_picture.content(picture)
    for lane in data["lanes"]:
        lane["kept"] = len(lane["tokens"])
    return {**data, **_mount.as_text(columns)}
