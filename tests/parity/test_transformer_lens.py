"""TransformerLens's weights give the numbers of its own forward, under the answers that are true of them."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import vizformer as vf
from tests import tiny
from tests.hooked_models import MODELS, Hooked
from tests.strangers import V
from vizformer.checkpoints import Opened, UnansweredError, load
from vizformer.errors import CheckpointError

IDS = [3, 7, 7, 1, 22, 0, 9]


def made(name: str) -> nn.Module:
    return tiny.randomise(MODELS[name][0]()).eval()


@torch.no_grad()
def same(ours: Opened, model: nn.Module) -> None:
    tiny.assert_close(ours.trace(ids=IDS).logits, model(torch.tensor([IDS]))[0])


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_are_those_of_the_author(name: str, tmp_path: Path) -> None:
    model, answers = made(name), MODELS[name][1]
    weights = model.state_dict()
    torch.save({"model_state_dict": weights, "epoch": 3, "optimizer_state_dict": {"state": {}}}, tmp_path / "a.pt")
    torch.save({f"module.{key}": value for key, value in weights.items()}, tmp_path / "b.pth")
    save_file({key: value.clone() for key, value in weights.items()}, tmp_path / "c.safetensors")
    for path in sorted(tmp_path.iterdir()):
        ours = load(path, **answers)
        same(ours, model)
        assert {fate.name: fate.shape for fate in ours.report.tensors} == {
            k: tuple(v.shape) for k, v in weights.items()
        }


def test_an_answer_that_the_tensors_give_is_taken_where_it_is_theirs(tmp_path: Path) -> None:
    model = made("TransformerLens")
    torch.save(model.state_dict(), tmp_path / "model.pt")
    same(load(tmp_path / "model.pt", activation="gelu_tanh", n_heads="4", causal=True), model)
    with pytest.raises(CheckpointError, match="n_heads=2: the tensors say 4; causal=false: the tensors say True"):
        load(tmp_path / "model.pt", activation="gelu_tanh", n_heads=2, causal=False)


def test_what_transformer_lens_says_beside_its_weights(tmp_path: Path) -> None:
    said = dict(n_ctx=12, act_fn="gelu_new", normalization_type="LNPre", attention_dir="causal", eps=1e-5)
    model = made("TransformerLens, folded")
    torch.save({"state_dict": model.state_dict(), "cfg": said}, tmp_path / "model.pt")
    same(load(tmp_path / "model.pt"), model)
    for field, value in (
        ("normalization_type", "SoLU"),
        ("positional_embedding_type", "shortformer"),
        ("act_fn", "solu"),
        ("scale_attn_by_inverse_layer_idx", True),
    ):
        torch.save({"state_dict": model.state_dict(), "cfg": {**said, field: value}}, tmp_path / "model.pt")
        with pytest.raises(CheckpointError, match=f'computes what VizFormer\'s models do not: "cfg" says {field}='):
            load(tmp_path / "model.pt")


@torch.no_grad()
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("outputs", [V - 1, 2])
def test_transformer_lens_with_fewer_logits_than_tokens(outputs: int, biased: bool, tmp_path: Path) -> None:
    """Its d_vocab_out: a model that adds reads "=" as well, one that checks brackets answers yes or no."""
    model = tiny.randomise(Hooked(outputs=outputs)).eval()
    weights = model.state_dict()
    if not biased:
        weights["unembed.b_U"].zero_()
    torch.save({name: t for name, t in weights.items() if biased or name != "unembed.b_U"}, tmp_path / "model.pt")
    with pytest.raises(UnansweredError, match=f"Are the {outputs} logits those of the token ids 0 to {outputs - 1}"):
        load(tmp_path / "model.pt", activation="gelu_tanh")
    expected, said = model(torch.tensor([IDS]))[0], dict(activation="gelu_tanh")
    ours = load(tmp_path / "model.pt", **said, outputs_are_tokens=True)
    trace = ours.trace(ids=IDS)
    tiny.assert_close(trace.logits[:, :outputs], expected)
    tiny.assert_close(trace.logits.softmax(-1)[:, :outputs], expected.softmax(-1))
    assert (trace.logits.softmax(-1)[:, outputs:] == 0).all()
    found = vf.analysis.logit_attribution(ours, trace, -1, outputs)  # of a token that is never predicted
    assert sum(term.value for term in found.terms) == pytest.approx(found.logit, rel=1e-6)
    other = load(tmp_path / "model.pt", **said, outputs_are_tokens=False)
    assert not other.report.has_head
    tiny.assert_close(other.trace(ids=IDS).residual("decoder.final"), trace.residual("decoder.final"))


def test_transformer_lens_with_another_head(tmp_path: Path) -> None:
    weights = tiny.randomise(Hooked(outputs=30)).state_dict()  # which are no ids that it reads
    torch.save(weights, tmp_path / "model.pt")
    report = load(tmp_path / "model.pt", activation="gelu_tanh").report
    assert not report.has_head
    assert any("this head is left out" in str(line) and "[16, 30]" in str(line) for line in report.assumptions)
    for name, shape in (("unembed.W_U", (12, 22)), ("unembed.b_U", (23,))):
        torch.save({**weights, name: torch.zeros(shape)}, tmp_path / "model.pt")
        with pytest.raises(CheckpointError, match=r"unembed\.W_U"):
            load(tmp_path / "model.pt", activation="gelu_tanh")
