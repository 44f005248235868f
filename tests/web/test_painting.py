"""Painted cells in a link."""

import itertools

import pytest

from vizformer.web.link import link_settings, mask_bitmap

ALL = tuple(itertools.product(range(mask_bitmap.SIDE), repeat=2))


@pytest.mark.parametrize("cells", [(), ((0, 0),), ((0, 1), (3, 2), (5, 5)), ALL, ((31, 31),), ((0, 31), (31, 0))])
def test_cells_come_back_as_they_were(cells: mask_bitmap.Cells) -> None:
    assert mask_bitmap.cells(mask_bitmap.text(cells)) == tuple(sorted(cells))


def test_every_cell_has_a_place_of_its_own() -> None:
    assert len({mask_bitmap.text([cell]) for cell in ALL}) == len(ALL)


def test_a_short_sentence_gives_a_short_text() -> None:
    assert len(mask_bitmap.text(list(itertools.product(range(6), repeat=2)))) == 6
    assert mask_bitmap.text(()) == ""


def test_the_longest_text_is_legal_in_a_link() -> None:
    written = mask_bitmap.text(ALL)
    pieces = {f"masks.cells_{'abcde'[i]}": written[40 * i : 40 * i + 40] for i in range(5)}
    assert "".join(pieces.values()) == written
    assert link_settings.is_legal(link_settings.write({name: piece for name, piece in pieces.items() if piece}))


def test_what_means_nothing_counts_as_empty() -> None:
    assert mask_bitmap.cells("++..,,") == ()
    assert all(max(cell) < mask_bitmap.SIDE for cell in mask_bitmap.cells("9" * 400))
