"""Padding in batches."""

import pytest

from vizformer.analysis.masks.padding import batches_of

LENGTHS = (3, 5, 4, 12, 3, 11, 5, 12, 4)


def test_cells_and_tokens_are_counted() -> None:
    found = batches_of((12, 3, 5, 4), 4, "length")
    (batch,) = found.batches
    assert (batch.longest, batch.cells, batch.tokens) == (12, 48, 24)
    assert found.waste == 0.5


def test_every_sentence_stands_in_one_batch() -> None:
    for order in ("mixed", "length"):
        found = batches_of(LENGTHS, 2, order)  # type: ignore[arg-type]
        assert sorted(n for batch in found.batches for n in batch.lengths) == sorted(LENGTHS)
        assert [len(batch.lengths) for batch in found.batches] == [2, 2, 2, 2, 1]


def test_sorted_by_length_less_is_padding() -> None:
    assert batches_of(LENGTHS, 3, "length").waste < batches_of(LENGTHS, 3, "mixed").waste
    assert batches_of((7,) * 8, 3, "mixed").waste == 0
    with pytest.raises(ValueError, match="0 sentences"):
        batches_of((), 3, "mixed")
