"""Results as tables: `.to_frame()` of what an analysis has found."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def frame(rows: Iterable[Mapping[str, Any]] | Iterable[Sequence[Any]], columns: Sequence[str] | None = None) -> Any:
    """A DataFrame with a row for each mapping, or for each sequence with the names of its `columns`.

    A column "head" holds whole numbers, or nothing where there is no head.
    """
    import pandas as pd

    found = pd.DataFrame(list(rows), columns=columns)
    heads = [name for name in found if name == "head" or str(name).endswith("_head")]
    return found.astype(dict.fromkeys(heads, "Int64"))
