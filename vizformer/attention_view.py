"""`vf.view`: attention of any program, in a notebook or as an HTML file, without a model.

vf.view(attentions, tokens)                    # [layers, heads, n, n], or a list with an array for each layer
vf.view(attentions, tokens).save("maps.html")  # works without a server and without a network
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vizformer.analysis.attention_arrays import AttentionArrays, as_arrays, attention_groups
from vizformer.components import attention, lines
from vizformer.errors import TraceError
from vizformer.messages import N_

MOST_BYTES = 60_000_000  # of numbers in a file; of a larger one it has small maps and one head


@dataclass(frozen=True)
class AttentionView:
    """A picture of attention arrays; Jupyter shows it by itself.

    Attributes:
        arrays: the weights, and in `notes` what is to say about them (rows that do not sum to 1).
        picture: "map", or "lines" between the tokens.
    """

    arrays: AttentionArrays
    picture: Literal["map", "lines"] = "map"

    @property
    def html(self) -> str:
        """The text of one HTML file."""
        found, component = self.arrays, lines if self.picture == "lines" else attention
        payload = component.pack_heads(found.weights, limit=MOST_BYTES)
        return str(component.to_html(payload, query_tokens=found.query_tokens, key_tokens=found.key_tokens))

    def save(self, path: str | Path) -> None:
        """Writes the HTML file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(str(note))}</p>" for note in self.arrays.notes)
        return (
            f'{notes}<iframe srcdoc="{html.escape(self.html)}" style="border: 0; width: 100%; height: 640px"></iframe>'
        )


def view(
    arrays: object,
    tokens: Sequence[str] = (),
    *,
    key_tokens: Sequence[str] = (),
    picture: Literal["map", "lines"] = "map",
) -> AttentionView:
    """Attention weights as a picture, wherever they come from.

    Args:
        arrays: [layers, heads, queries, keys], [layers, 1, heads, queries, keys], [heads, queries, keys] or
            [queries, keys]; or a list or dict with one of the last two for each layer. Of numpy or PyTorch.
        tokens: the label of each query, and of each key where `key_tokens` are not given.
        picture: "map" or "lines".

    Raises:
        TraceError: numbers that are no weights, shapes that have no place here, another number of tokens.
    """
    groups = attention_groups(as_arrays(arrays), tuple(map(str, tokens)), tuple(map(str, key_tokens)))
    if len(groups) > 1:
        raise TraceError(
            N_("These are several kinds of attention: {names}. Hand in one of them.", names=", ".join(list(groups)[:8]))
        )
    return AttentionView(next(iter(groups.values())), picture)
