"""The circuits of a recorded model are those of the same folder converted, or it is said why there are none."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

pytest.importorskip("transformers")

import vizformer as vf
from tests.checkpoints.test_head_weights import opened
from tests.recorder.hand_written import GPT, D
from vizformer.analysis.circuits import compositions, copying_scores, eigenvalues, head_weights, what_is_left_out
from vizformer.errors import TraceError


@pytest.mark.parametrize(("kind", "ways"), [("gpt2", "QKV"), ("llama", "V"), ("t5", "QKV")])
def test_copying_and_composition_of_a_model_converted_and_recorded_are_the_same(
    kind: str, ways: str, tmp_path: Path
) -> None:
    own, recorded = opened(kind, tmp_path)
    assert np.allclose(copying_scores(own), copying_scores(recorded), atol=1e-5)
    one, other = compositions(own), compositions(recorded)
    assert one.places == other.places
    for way, scores in other.scores.items():
        if way in ways:
            assert np.allclose(one.scores[way], scores, atol=1e-5, equal_nan=True)
            assert np.allclose(one.excess[way], other.excess[way], atol=1e-3, equal_nan=True)
        else:  # positions turn queries and keys
            assert np.isnan(scores).all()
            assert other.clear(way) == []
    a, b = eigenvalues(own, 1, 2), eigenvalues(recorded, 1, 2)
    factor = np.abs(a).sum() / np.abs(b).sum()  # of the norms' division
    assert np.allclose(np.sort(np.abs(a)), np.sort(np.abs(b)) * factor, rtol=1e-3, atol=1e-6)
    assert any("by way of the values" in one.text for one in what_is_left_out(recorded)) is (ways == "V")


def test_a_head_whose_output_a_norm_follows_has_no_circuits(tmp_path: Path) -> None:
    _, recorded = opened("bert", tmp_path)
    for asked in (copying_scores, compositions):
        with pytest.raises(TraceError, match="No matrices were found in layer 0"):
            asked(recorded)
    with pytest.raises(TraceError, match="no head 9"):
        head_weights(recorded, "encoder", 0, 9)


class Capped(GPT):
    """Its logits are no matrix times the last row."""

    def forward(self, ids: Tensor) -> Tensor:
        return 3 * torch.tanh(super().forward(ids) / 3)


class NormedTable(nn.Embedding):
    """A norm stands between the table and the stream (BLOOM)."""

    def forward(self, ids: Tensor) -> Tensor:
        return F.layer_norm(super().forward(ids), (D,))


class LastRow(GPT):
    """It hands back the logits of its last token alone (nanoGPT)."""

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids)[:, -1:]


@pytest.mark.parametrize("bent", ["logits", "embeddings"])
def test_no_copying_score_is_made_up_where_a_token_or_a_logit_is_no_product(bent: str) -> None:
    model = Capped() if bent == "logits" else GPT()
    if bent == "embeddings":
        model.wte = NormedTable.from_pretrained(model.wte.weight.detach(), freeze=False)
    with pytest.raises(TraceError, match="No matrices were found that turn a token"):
        copying_scores(vf.wrap(model))
    assert np.isfinite(compositions(vf.wrap(model)).scores["V"]).any()


def test_a_model_that_hands_back_its_last_row_has_the_same_circuits() -> None:
    assert np.allclose(copying_scores(vf.wrap(GPT())), copying_scores(vf.wrap(LastRow())), atol=1e-5)
