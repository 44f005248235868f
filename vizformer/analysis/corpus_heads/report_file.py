"""A finished report as a file of arrays: written by the process that measured, read by the one that shows it."""

from pathlib import Path
from typing import Any

import numpy as np

from vizformer.analysis.corpus_heads.report import HeadReport, KindReport

_TABLES = ("mean", "spread", "texts", "strongest", "rows", "most")
_ARRAYS = ("similarity", "cluster", "nearest", "sign")


def write_report(report: HeadReport, path: Path) -> None:
    """Wholly or not at all: what has the name is complete."""
    arrays: dict[str, Any] = {"said": np.array([report.model, report.corpus]), "n": [report.texts, report.given]}
    for kind, found in report.kinds.items():
        arrays[f"{kind}/n_kv_heads"] = found.n_kv_heads
        arrays |= {f"{kind}/{name}": getattr(found, name) for name in _ARRAYS}
        arrays |= {
            f"{kind}/{table}/{name}": values for table in _TABLES for name, values in getattr(found, table).items()
        }
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        np.savez(file, **arrays)
    new.replace(path)


def read_report(path: Path) -> HeadReport:
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    kinds: dict[Any, KindReport] = {}
    for name in arrays:
        kind, slash, __ = name.partition("/")
        if not slash or kind in kinds:
            continue
        tables: dict[str, Any] = {
            table: {key.split("/")[2]: values for key, values in arrays.items() if key.startswith(f"{kind}/{table}/")}
            for table in _TABLES
        }
        others: dict[str, Any] = {one: arrays[f"{kind}/{one}"] for one in _ARRAYS}
        kinds[kind] = KindReport(kind=kind, n_kv_heads=int(arrays[f"{kind}/n_kv_heads"]), **tables, **others)
    model, corpus = (str(one) for one in arrays["said"])
    texts, given = (int(one) for one in arrays["n"])
    return HeadReport(model, corpus, texts, given, kinds)
