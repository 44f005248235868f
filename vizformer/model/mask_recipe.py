"""A mask given by its name and its settings, from which the mask of a text of any length is made."""

from dataclasses import dataclass
from typing import Literal, get_args

from jaxtyping import UInt8
from torch import Tensor

from vizformer.model.masks import Mask, causal_mask, prefix_mask
from vizformer.model.sparse_masks import bigbird_mask, bigbird_parts, window_mask

MaskKind = Literal["causal", "padding", "cross", "prefix", "window", "bigbird"]
KINDS: tuple[MaskKind, ...] = get_args(MaskKind)


@dataclass(frozen=True)
class MaskRecipe:
    """The name and the settings of a mask; each kind uses some of them.

    Attributes:
        kind: the name of the mask; those of padding and of cross-attention follow from a batch, not from a length.
        prefix: so many keys are seen by all queries ("prefix").
        reach: so many keys are seen on each side ("window", "bigbird").
        n_global, n_random, seed: see `bigbird_parts`.
        causal: a "window" or a "bigbird" that does not look ahead either.
    """

    kind: MaskKind
    prefix: int = 2
    reach: int = 1
    n_global: int = 1
    n_random: int = 1
    seed: int = 0
    causal: bool = False

    def mask(self, n: int) -> Mask | None:
        """The mask of n tokens; None for "padding" and "cross"."""
        match self.kind:
            case "causal":
                return causal_mask(n)
            case "prefix":
                return prefix_mask(n, self.prefix)
            case "window":
                return window_mask(n, self.reach, causal=self.causal)
            case "bigbird":
                return bigbird_mask(n, self.reach, self.n_global, self.n_random, self.seed, causal=self.causal)
        return None

    def kept(self, n: int) -> UInt8[Tensor, "n n"] | None:
        """Why each cell of a "bigbird" mask is open (`vizformer.model.sparse_masks.Kept`); None for other kinds."""
        if self.kind != "bigbird":
            return None
        return bigbird_parts(n, self.reach, self.n_global, self.n_random, self.seed, causal=self.causal)
