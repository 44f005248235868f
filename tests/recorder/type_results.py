"""What recording comes to for each text type of `transformers`, and the table of it (docs/recorded_types.md).

python -m tests.recorder.type_results     # writes the table, in some two minutes of one core
"""

import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tests.recorder.all_types import REFUSED, given, made, tables
from tests.recorder.witness import Seen, witnessed
from vizformer.recorder import check_lengths, lengths_of, record
from vizformer.recorder.recorded_trace import RecordedTrace

TABLE = Path(__file__).resolve().parents[2] / "docs" / "recorded_types.md"

MOST = 32  # tokens of the longer text: the windows are of four
N = 13

_ABOUT = """# Types of transformers, recorded

All types of `transformers` that write or fill in text, each a tiny model with random weights, run by its own code and
recorded (`vizformer.recorder`). *Exact*: z, recomputed, is the model's. *Whole*: with all z set to 0 no token changes
another. *Tokenwise*: then queries, keys and values hold no token but their own. Tried at two lengths, one beyond the longest
window.
*Witness*: how many of the calls that the model's own eager function saw (interface), or of the maps that it hands back
(returned), the recording has. What does not hold is named, here and beside the pictures; a type that does not open says why.

Written by `python -m tests.recorder.type_results`; a sample is computed anew in every test run, all of it in the sweep.

Of {n} types {opened} open, {exact} are exact, and {held} exact, whole and tokenwise. Of the {met} with a witness {agree}
agree with it at every call. Drawn as if whole and not what the witness saw: {wrong}.

| type | class | calls | exact | whole | tokenwise | witness | what is said |
|---|---|---|---|---|---|---|---|"""
SAME = 5e-5  # between the fused call and the eager one: of T5, whose scores are not scaled, 4e-5


@dataclass(frozen=True)
class Result:
    """Of one type.

    Attributes:
        cls: the class that was recorded.
        sites: how many attention calls a run makes.
        said: what does not hold, in words, at texts of two lengths; of what does not open, why.
        witness: by what other means its maps are known: "interface", "returned", or "" where there is none.
        seen, met: how many calls the witness saw, and how many of them the recording has, maps and z.
    """

    name: str
    cls: str
    opens: bool
    sites: int = 0
    exact: bool = False
    whole: bool = False
    tokenwise: bool = False
    said: tuple[str, ...] = ()
    witness: str = ""
    seen: int = 0
    met: int = 0

    @property
    def holds(self) -> bool:
        return self.exact and self.whole and self.tokenwise

    @property
    def wrong(self) -> bool:
        """Drawn as if whole, and not what the witness saw."""
        return self.holds and self.met < self.seen

    @property
    def row(self) -> str:
        if not self.opens:
            return f"| {self.name} | {self.cls} | | | | | | {self.said[0]} |"
        marks = " | ".join("yes" if one else "no" for one in (self.exact, self.whole, self.tokenwise))
        witness = f"{self.witness}, {self.met} of {self.seen}" if self.witness else ""
        return f"| {self.name} | {self.cls} | {self.sites} | {marks} | {witness} | {_short(self.said)} |"


def _short(said: tuple[str, ...]) -> str:
    """The first of what was said, and where there is no attention the second; the layers of a list once."""
    return "; ".join(map(_once, said[: 2 if said and said[0].startswith("no attention") else 1]))


def _once(said: str) -> str:
    def short(names: re.Match[str]) -> str:
        return ", ".join(dict.fromkeys(re.sub(r"\.\d+(?=\.|$)", ".*", name) for name in names[0].split(", ")))

    return re.sub(r"[\w.]+(?:, [\w.]+)+", short, said)


def result(name: str) -> Result:
    """Builds a type, checks its recording at two lengths, and compares it with a witness."""
    cls = tables()[name]
    if name in REFUSED:
        return Result(name, cls, False, said=(REFUSED[name],))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made(name, of_text=True)
        found = check_lengths(model, lambda n: model(**given(model, n)), lengths_of(model, MOST))
        trace = record(model, **given(model, N))
        eager = made(name, "eager", of_text=True)
        kind, seen = witnessed(eager, given(eager, N))
        met = sum(_met(trace, one, number, seen) for number, one in enumerate(seen))
        if met < len(seen):  # experts may be chosen otherwise where a digit differs: the same calls then
            trace = record(eager, **given(eager, N))
            met = sum(_met(trace, one, number, seen) for number, one in enumerate(seen))
    said = tuple(map(str, found.said))
    return Result(
        name, cls, True, len(trace.attention), found.exact, found.whole, found.tokenwise, said, kind, len(seen), met
    )


def _met(trace: RecordedTrace, one: Seen, number: int, seen: list[Seen]) -> bool:
    """Whether a recording has what a witness saw: at its module, in the order of calls; a map without a module anywhere."""
    if not one.site:
        n_q, n_k = (0, 0) if one.weights is None else one.weights.shape[-2:]
        rows, columns = slice(-n_q, None), slice(-n_k, None)  # cpmant hands back the corner behind its prompt
        return any(_same(one.weights, attention.maps()[:, rows, columns]) for attention in trace.attention)
    if one.site not in trace.sites:
        return False
    runs = trace.runs(one.site)
    turn = sum(other.site == one.site for other in seen[:number])
    if turn >= len(runs):
        return False
    attention = runs[turn]
    z = torch.stack([attention.z(head) for head in range(attention.n_heads)])
    return _same(one.z, z) and (one.weights is None or _same(one.weights, attention.maps()))


def _same(a: Tensor | None, b: Tensor) -> bool:
    if a is None or a.shape != b.shape:
        return False
    return bool((a - b).abs().max() <= SAME * max(1.0, float(b.abs().max())))


def table(results: list[Result]) -> str:
    """The page of the documentation."""
    opened = [one for one in results if one.opens]
    held = [one for one in opened if one.holds]
    met = [one for one in opened if one.witness]
    lines = [
        _ABOUT.format(
            n=len(results),
            opened=len(opened),
            exact=sum(one.exact for one in opened),
            held=len(held),
            agree=sum(one.met == one.seen for one in met),
            met=len(met),
            wrong=sum(one.wrong for one in results),
        )
    ]
    return "\n".join([*lines, *(one.row for one in results)]) + "\n"


def main() -> None:
    import transformers

    transformers.logging.set_verbosity_error()
    results = []
    for name in tables():
        results.append(result(name))
        print(results[-1].row, file=sys.stderr, flush=True)
    TABLE.write_text(table(results), encoding="utf-8")


if __name__ == "__main__":
    main()
