"""What is drawn of the line view, as a text for the link: "0,3,5@0.1@k4".

0,3,5    these heads of the layer (without: the head that is looked at)
@0.1     weights from 0.1 up (without: the usual threshold)
@k4      the lines of key 4 are kept (without: those of the query that is looked at; "@-": of no token)
@w200    of a text that is too long for lines, the part that begins with token 200 (without: around the query)
"""

import re
from dataclasses import dataclass

from vizformer.messages import N_
from vizformer.web.link.link_settings import UnusableError

_SAID = re.compile(
    r"([0-9]{1,4}(?:,[0-9]{1,4}){0,255})?(?:@(0(?:\.[0-9]{1,4})?|1))?(?:@(-|k[0-9]{1,5}))?(?:@w([0-9]{1,5}))?"
)


@dataclass(frozen=True)
class LineSettings:
    """The settings of the line view; None stands for what the text leaves out, `let_go` for no highlighted token."""

    heads: tuple[int, ...] | None = None
    threshold: float | None = None
    key: int | None = None
    let_go: bool = False
    start: int | None = None


def read(text: str) -> LineSettings:
    found = _SAID.fullmatch(text)
    if found is None:
        raise UnusableError(N_("it must be heads, a threshold and a key, such as 0,3,5@0.1@k4"))
    heads, threshold, pin, start = found.groups()
    return LineSettings(
        heads=tuple(sorted({int(head) for head in heads.split(",")})) if heads else None,
        threshold=None if threshold is None else float(threshold),
        key=int(pin[1:]) if pin and pin != "-" else None,
        let_go=pin == "-",
        start=None if start is None else int(start),
    )


def write(settings: LineSettings) -> str:
    heads = ",".join(map(str, settings.heads or ()))
    threshold = "" if settings.threshold is None else f"@{round(settings.threshold, 4):g}"
    pin = "@-" if settings.let_go else "" if settings.key is None else f"@k{settings.key}"
    part = "" if settings.start is None else f"@w{settings.start}"
    return f"{heads}{threshold}{pin}{part}"
