"""Tables that are used in several places."""

import pytest

from tests import tiny
from vizformer.analysis.costs.parameter_count import paper_sharing, sharing
from vizformer.model.transformer import count_parameters

PLACES = {
    "encoder-decoder": ("encoder", "decoder", "logits"),
    "decoder-only": ("decoder", "logits"),
    "encoder-only": ("encoder", "logits"),
}


@pytest.mark.parametrize("architecture", tiny.STACKS)
def test_a_tied_model_has_one_table_and_an_untied_one_two(architecture: str) -> None:
    tied = tiny.checkpoint(architecture, tied_unembedding=True).model
    found = sharing(tied)
    assert found.tables == (PLACES[architecture],)
    assert found.stored + found.others == count_parameters(tied.config)
    untied = tiny.checkpoint(architecture, tied_unembedding=False).model
    apart = sharing(untied)
    assert apart.tables == (PLACES[architecture][:-1], ("logits",))
    assert apart.stored == 2 * found.stored
    assert apart.apart == found.apart
    assert apart.stored + apart.others == count_parameters(untied.config)
    assert found.saved > apart.saved >= 0


def test_the_papers_base_model_saves_two_tables() -> None:
    found = paper_sharing()
    assert found.stored + found.others == 63_082_496
    assert found.apart - found.stored == 2 * 37_000 * 512
    assert found.saved == pytest.approx(37_888_000 / (63_082_496 + 37_888_000))
