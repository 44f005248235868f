"""A finished report as a file of arrays: written by the process that measured, read by the one that shows it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np

from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.measures import MEASURES, TARGETS
from vizformer.analysis.corpus_heads.report import COLUMNS, MOST_TOKENS, TENTHS, TOKEN_COUNTS, HeadReport, KindReport
from vizformer.analysis.corpus_heads.sums import BINS
from vizformer.analysis.heads.maps import Kind
from vizformer.assets import asset
from vizformer.errors import VizformerError

PER_HEAD: Mapping[str, tuple[tuple[int, ...], type]] = {
    **{f"{table}/{name}": ((), float) for table in ("mean", "spread") for name in COLUMNS},
    **{f"{table}/{name}": ((), int) for table in ("texts", "strongest") for name in MEASURES},
    **{f"rows/{name}": ((), int) for name in TARGETS},
    **{f"most/{name}": ((), float) for name in TARGETS},
    **{f"tenths/{name}": ((TENTHS,), int) for name in MEASURES},
    **{f"tenth_values/{name}": ((TENTHS,), float) for name in MEASURES},
    **{f"tokens/{name}": ((MOST_TOKENS,), int) for name in TOKEN_COUNTS},
    **{f"tokens/{name}": ((MOST_TOKENS,), str) for name in ("key", "query")},
    **dict.fromkeys(("cluster", "nearest", "sign", "picks"), ((), int)),
    "largest": ((BINS,), int),
}
"""What is said of every head, by fields of a `KindReport` or its tables: shape after [n_layers, n_heads], and type."""


def arrays_of(found: KindReport) -> dict[str, Any]:
    """The arrays of PER_HEAD by their names."""
    split = {name: name.partition("/") for name in PER_HEAD}
    return {
        name: getattr(found, field)[key] if slash else getattr(found, field)
        for name, (field, slash, key) in split.items()
    }


def kind_of_arrays(
    kind: Kind, layer_heads: tuple[tuple[int, int], ...], arrays: Mapping[str, Any], similarity: Any
) -> KindReport:
    """The same from its arrays by their names."""
    fields: dict[str, Any] = {}
    for name in PER_HEAD:
        field, slash, key = name.partition("/")
        if slash:
            fields.setdefault(field, {})[key] = arrays[name]
        else:
            fields[field] = arrays[name]
    return KindReport(kind=kind, layer_heads=layer_heads, similarity=similarity, **fields)


def write_report(report: HeadReport, path: Path) -> None:
    """Wholly or not at all: what has the name is complete."""
    said = [report.model, report.corpus, report.weights]
    arrays: dict[str, Any] = {"said": np.array(said), "n": [report.texts, report.given]}
    for kind, found in report.kinds.items():
        own = {"layer_heads": found.layer_heads, "similarity": found.similarity, **arrays_of(found)}
        arrays |= {f"{kind}/{name}": values for name, values in own.items()}
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        np.savez_compressed(file, **arrays)
    new.replace(path)


def read_report(path: Path) -> HeadReport:
    """
    Raises:
        VizformerError: a file of another version.
    """
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    try:
        kinds = {
            kind: kind_of_arrays(
                kind,
                tuple((int(heads), int(keys)) for heads, keys in arrays[f"{kind}/layer_heads"]),
                {name: arrays[f"{kind}/{name}"] for name in PER_HEAD},
                arrays[f"{kind}/similarity"],
            )
            for kind in get_args(Kind)
            if f"{kind}/layer_heads" in arrays
        }
        model, corpus, weights = (str(one) for one in arrays["said"])
        texts, given = (int(one) for one in arrays["n"])
    except (KeyError, ValueError) as error:
        raise VizformerError(
            "{path} was written by another version of VizFormer. Measure the heads again.", path=path.name
        ) from error
    return HeadReport(model, corpus, texts, given, kinds, weights)


WEIGHTS = "model.safetensors"


def path_of_bundled_report(model: Path, corpus: Corpus) -> Path:
    """Where the report that comes with VizFormer on the model in a folder would lie, whether it is there or not.

    Its name says weights and texts: a report of others is never taken for it.
    """
    return asset("head_reports", f"{digest(model, corpus.key)}.npz")


def digest(model: Path, key: str = "") -> str:
    """Says which weights are in a folder, for what was measured with them."""
    return hashlib.blake2b((model / WEIGHTS).read_bytes(), digest_size=8, key=key.encode()).hexdigest()
