"""Painted cells in a link."""

import itertools

import pytest

from vizformer.web.lessons.masks import mask_painting
from vizformer.web.link import link_settings
from vizformer.web.link.view import View

ALL = tuple(itertools.product(range(mask_painting.SIDE), repeat=2))


@pytest.mark.parametrize("cells", [(), ((0, 0),), ((0, 1), (3, 2), (5, 5)), ALL, ((31, 31),), ((0, 31), (31, 0))])
def test_cells_come_back_as_they_were(cells: mask_painting.Cells) -> None:
    assert mask_painting.read(mask_painting.write(cells)) == tuple(sorted(cells))


def test_every_cell_has_a_place_of_its_own() -> None:
    assert len({mask_painting.write([cell]) for cell in ALL}) == len(ALL)


def test_a_short_sentence_gives_a_short_text() -> None:
    assert len(mask_painting.write(list(itertools.product(range(6), repeat=2)))) == 6
    assert mask_painting.write(()) == ""


def test_the_longest_text_is_legal_in_a_link() -> None:
    written = mask_painting.write(ALL)
    pieces = {f"masks.cells_{'abcde'[i]}": written[40 * i : 40 * i + 40] for i in range(5)}
    assert "".join(pieces.values()) == written
    assert link_settings.read(link_settings.write(pieces)) == pieces


def test_what_means_nothing_in_a_link_counts_as_not_painted(monkeypatch) -> None:
    monkeypatch.setattr(mask_painting.state, "view", lambda: View(settings="masks.cells_a:++..,,"))
    assert mask_painting.painted_cells(8, 8) == ()
    monkeypatch.setattr(
        mask_painting.state, "view", lambda: View(settings="masks.cells_a:" + mask_painting.write([(3, 1), (9, 9)]))
    )
    assert mask_painting.painted_cells(8, 8) == ((3, 1),)
