"""Results as tables: `.to_frame()` of what an analysis has found."""

from collections.abc import Iterable, Mapping
from typing import Any


def frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A DataFrame with a row for each mapping; a column "head" holds whole numbers, or nothing where there is no head."""
    import pandas as pd

    found = pd.DataFrame(list(rows))
    heads = [name for name in found if name == "head" or str(name).endswith("_head")]
    return found.astype(dict.fromkeys(heads, "Int64"))
