"""A mask by its name and settings is the mask that the functions of `masks` and `mask_recipe` make."""

import pytest
import torch

from vizformer.model.masks import KINDS, Kept, Mask, MaskRecipe, bigbird_mask, causal_mask, prefix_mask, window_mask

N = 9


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (MaskRecipe("causal"), causal_mask(N)),
        (MaskRecipe("prefix", prefix=4), prefix_mask(N, 4)),
        (MaskRecipe("window", reach=2), window_mask(N, 2)),
        (MaskRecipe("window", reach=2, causal=True), window_mask(N, 2, causal=True)),
        (MaskRecipe("bigbird", reach=1, n_global=2, n_random=3, seed=5), bigbird_mask(N, 1, 2, 3, 5)),
        (MaskRecipe("bigbird", seed=5, causal=True), bigbird_mask(N, 1, 1, 1, 5, causal=True)),
    ],
)
def test_a_recipe_makes_the_mask_of_its_name(recipe: MaskRecipe, expected: Mask) -> None:
    found = recipe.mask(N)
    assert found is not None
    assert torch.equal(found.bias, expected.bias)
    assert torch.equal(found.reason, expected.reason)


def test_masks_that_follow_from_a_batch_are_not_made_from_a_length() -> None:
    assert [kind for kind in KINDS if MaskRecipe(kind).mask(N) is None] == ["padding", "cross"]


def test_only_bigbird_says_why_its_cells_are_open() -> None:
    assert [kind for kind in KINDS if MaskRecipe(kind).kept(N) is not None] == ["bigbird"]
    recipe = MaskRecipe("bigbird", n_random=2, seed=3, causal=True)
    kept, mask = recipe.kept(N), recipe.mask(N)
    assert kept is not None
    assert mask is not None
    assert torch.equal(kept > Kept.NO, mask.reason[0, 0] == 0)
