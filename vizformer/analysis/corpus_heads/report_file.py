"""A finished report as a file of arrays: written by the process that measured, read by the one that shows it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np

from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.measures import MEASURES, TARGETS
from vizformer.analysis.corpus_heads.report import COLUMNS, TOKEN_COUNTS, HeadReport, KindReport
from vizformer.analysis.heads.maps import Kind
from vizformer.assets import asset
from vizformer.errors import VizformerError

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


WEIGHTS = "model.safetensors"


def path_of_bundled_report(model: Path, corpus: Corpus) -> Path:
    """Where the report that comes with VizFormer on the model in a folder would lie, whether it is there or not.

    Its name says weights and texts: a report of others is never taken for it.
    """
    return asset("head_reports", f"{digest(model, corpus.key)}.npz")


def digest(model: Path, key: str = "") -> str:
    """Says which weights are in a folder, for what was measured with them."""
    return hashlib.blake2b((model / WEIGHTS).read_bytes(), digest_size=8, key=key.encode()).hexdigest()
