"""What a report says of every head, and its rows as a table in a file."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy import ndarray

from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.measures import MEASURES, TARGETS
from vizformer.analysis.frames import frame
from vizformer.analysis.heads.maps import Kind
from vizformer.assets import asset
from vizformer.errors import VizformerError
from vizformer.figures.files import written

POSITIONAL, CONTENT, REPEATED, REDUNDANCY = "positional", "content", "induction_repeated", "redundancy"
BESIDE, COPYING, EFFECT = "beside_sinks", "copying", "logit_effect"
COLUMNS = (*MEASURES, REPEATED, POSITIONAL, CONTENT, REDUNDANCY, BESIDE, COPYING, EFFECT)
"""The measures of a finished report, in the order in which they are shown."""
LEAST_COMPARED = 0.1  # two heads are compared where both leave enough beside the sinks in this share of the rows
TENTHS, MOST_TOKENS, LONGEST_TOKEN = 10, 10, 40  # tokens of a head that are kept, and their characters
TOKEN_COUNTS = ("key_count", "query_count", "query_rows")
SIGNS = {1: "copying", -1: "anti-copying", 0: ""}  # the names of the signs of OV in a row of the report

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class KindReport:
    """All heads of one kind of attention.

    Layers may have different numbers of heads; n_heads is that of the layers that have most.  Where a layer has fewer there
    is no number: NaN, 0, or -1.

    Attributes:
        layer_heads: of every layer how many heads it has, and heads of keys, which several may share.
        mean, spread: of every measure of COLUMNS, over the texts that say something of it: mean and standard deviation.
            NaN where none does, and as spread of what is computed from all texts together.
        texts: how many texts say something.
        strongest: the number of the text where a measure is strongest, -1 where there is none.
        rows, most: of the targets: in how many rows of all texts there is a choice, and in which share of them the target
            gets more than half of the attention.
        nearest: the head whose maps over all texts, without the columns of the sinks, have the largest cosine with those of
            this head (the measure REDUNDANCY), as layer * n_heads + head; -1 where none is compared.
        sign: of OV: 1 where a head copies, -1 where it anti-copies, 0 where it clearly does neither or nobody knows.
        tenths, tenth_values: of a measure the kept texts in the order of its value there, the smallest first, cut into ten
            parts: the number of the text in the middle of each, and the value; -1 and NaN where none says something.
            Kept are the first texts (`Sums.keeps`).
        largest: in how many rows of the kept texts the largest weight is in which of 20 equal parts of 0 to 1.
        picks: in how many of these rows more than half of the attention is on one key that is no sink.
        tokens: of the rows that pick, "key" and "query": what is picked most often, and what picks more often than the
            rows of this head do on average, MOST_TOKENS of each (empty texts where there are fewer); how often
            ("key_count", "query_count"), and how many rows that query has in all ("query_rows").
    """

    kind: Kind
    layer_heads: tuple[tuple[int, int], ...]
    mean: Mapping[str, Float[ndarray, "n_layers n_heads"]]
    spread: Mapping[str, Float[ndarray, "n_layers n_heads"]]
    texts: Mapping[str, Int[ndarray, "n_layers n_heads"]]
    strongest: Mapping[str, Int[ndarray, "n_layers n_heads"]]
    rows: Mapping[str, Int[ndarray, "n_layers n_heads"]]
    most: Mapping[str, Float[ndarray, "n_layers n_heads"]]
    nearest: Int[ndarray, "n_layers n_heads"]
    sign: Int[ndarray, "n_layers n_heads"]
    tenths: Mapping[str, Int[ndarray, "n_layers n_heads tenths"]]
    tenth_values: Mapping[str, Float[ndarray, "n_layers n_heads tenths"]]
    largest: Int[ndarray, "n_layers n_heads bins"]
    picks: Int[ndarray, "n_layers n_heads"]
    tokens: Mapping[str, Shaped[ndarray, "n_layers n_heads tokens"]]

    @property
    def shape(self) -> tuple[int, int]:
        n_layers, n_heads = self.nearest.shape
        return n_layers, n_heads

    @property
    def places(self) -> list[tuple[int, int]]:
        """The (layer, head) indices of every head."""
        return [(layer, head) for layer, (heads, __) in enumerate(self.layer_heads) for head in range(heads)]

    @property
    def grouped(self) -> bool:
        """Whether heads share their keys."""
        return any(keys < heads for heads, keys in self.layer_heads)

    def group(self, layer: int, head: int) -> int:
        """The key head that a head reads: its own, or one that several share."""
        heads, keys = self.layer_heads[layer]
        return head // (heads // keys)


@dataclass(frozen=True)
class HeadReport:
    """What the heads of a model do on a corpus.

    Attributes:
        model, corpus: their names.
        texts: how many of the corpus the model could read; `given` is how many there are.
        kinds: in the order of the data flow.
    """

    model: str
    corpus: str
    texts: int
    given: int
    kinds: Mapping[Kind, KindReport]

    def rows(self) -> list[dict[str, Any]]:
        """One row a head: kind, layer, head, its group, each measure with its spread and the share of rows where the
        target gets most, the strongest text, the sign of OV, the head most alike.
        """
        found = []
        for kind, report in self.kinds.items():
            n_heads = report.shape[1]
            for layer, head in report.places:
                row: dict[str, Any] = {"kind": kind, "layer": layer, "head": head, "group": report.group(layer, head)}
                for name in COLUMNS:
                    row[name] = float(report.mean[name][layer, head])
                    row[f"{name}_spread"] = float(report.spread[name][layer, head])
                    if name in TARGETS:
                        row[f"{name}_most"] = float(report.most[name][layer, head])
                    if name in MEASURES:
                        row[f"{name}_text"] = int(report.strongest[name][layer, head])
                nearest = int(report.nearest[layer, head])
                row["ov_sign"] = SIGNS[int(report.sign[layer, head])]
                row["nearest"] = "" if nearest < 0 else f"{nearest // n_heads}.{nearest % n_heads}"
                found.append(row)
        return found

    def to_frame(self) -> Any:
        return frame(self.rows())

    def csv(self) -> str:
        rows = self.rows()
        return written([list(rows[0]), *(row.values() for row in rows)])

    def save(self, path: Path) -> None:
        """Writes the rows as CSV, or as Parquet where the name ends so.

        Raises:
            VizformerError: another ending.
        """
        check_name(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(self.rows()), path)
            return
        path.write_text(self.csv(), encoding="utf-8", newline="")


def check_name(path: Path) -> None:
    """Before anything is measured.

    Raises:
        VizformerError: the name says none of the ways to write.
    """
    if path.suffix not in (endings := (".csv", ".parquet")):
        raise VizformerError(
            "{path} has none of the endings {endings}. Give it one of them.", path=path.name, endings=", ".join(endings)
        )


# A finished report as a file of arrays: written by the process that measured, read by the one that shows it.

_PER_HEAD = (
    *(f"{table}/{name}" for table in ("mean", "spread") for name in COLUMNS),
    *(f"{table}/{name}" for table in ("texts", "strongest", "tenths", "tenth_values") for name in MEASURES),
    *(f"{table}/{name}" for table in ("rows", "most") for name in TARGETS),
    *(f"tokens/{name}" for name in ("key", "query", *TOKEN_COUNTS)),
    *("nearest", "sign", "picks", "largest"),
)
"""The arrays with a value for every head: fields of a `KindReport`, or of its tables."""


def _arrays_of(found: KindReport) -> dict[str, Any]:
    split = {name: name.partition("/") for name in _PER_HEAD}
    return {
        name: getattr(found, field)[key] if slash else getattr(found, field)
        for name, (field, slash, key) in split.items()
    }


def _kind_of_arrays(kind: Kind, arrays: Mapping[str, Any]) -> KindReport:
    fields: dict[str, Any] = {}
    for name in _PER_HEAD:
        field, slash, key = name.partition("/")
        if slash:
            fields.setdefault(field, {})[key] = arrays[f"{kind}/{name}"]
        else:
            fields[field] = arrays[f"{kind}/{name}"]
    layer_heads = tuple((int(heads), int(keys)) for heads, keys in arrays[f"{kind}/layer_heads"])
    return KindReport(kind=kind, layer_heads=layer_heads, **fields)


def write_report(report: HeadReport, path: Path) -> None:
    """Wholly or not at all: what has the name is complete."""
    said = [report.model, report.corpus]
    arrays: dict[str, Any] = {"said": np.array(said), "n": [report.texts, report.given]}
    for kind, found in report.kinds.items():
        own = {"layer_heads": found.layer_heads, **_arrays_of(found)}
        arrays |= {f"{kind}/{name}": values for name, values in own.items()}
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        np.savez_compressed(file, **arrays)
    new.replace(path)


def read_report(path: Path) -> HeadReport:
    """Reads a head report from a file.

    Raises:
        VizformerError: a file of another version.
    """
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    try:
        kinds = {kind: _kind_of_arrays(kind, arrays) for kind in get_args(Kind) if f"{kind}/layer_heads" in arrays}
        model, corpus = (str(one) for one in arrays["said"])
        texts, given = (int(one) for one in arrays["n"])
    except (KeyError, ValueError) as error:
        raise VizformerError(
            "{path} was written by another version of VizFormer. Measure the heads again.", path=path.name
        ) from error
    return HeadReport(model, corpus, texts, given, kinds)


def path_of_bundled_report(model: Path, corpus: Corpus) -> Path:
    """Where the report that comes with VizFormer on the model in a folder would lie, whether it is there or not.

    Its name says weights and texts: a report of others is never taken for it.
    """
    return asset("head_reports", f"{digest(model, corpus.key)}.npz")


def digest(model: Path, key: str = "") -> str:
    """Says which weights are in a folder, for what was measured with them."""
    return hashlib.blake2b((model / WEIGHTS).read_bytes(), digest_size=8, key=key.encode()).hexdigest()
