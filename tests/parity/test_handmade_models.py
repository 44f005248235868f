"""Hand-written models, read by role: the numbers of their authors' own forward, under the answers that are true of them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import vizformer as vf
from tests import handmade_models, strangers, tiny
from tests.handmade_models import MODELS
from vizformer.checkpoints import Opened, UnansweredError, load
from vizformer.errors import CheckpointError

IDS, TARGET = [3, 7, 7, 1, 22, 0, 9], [1, 5, 4]


def made(name: str) -> nn.Module:
    return tiny.randomise(MODELS[name].make()).eval()


@torch.no_grad()
def same(ours: Opened, model: nn.Module, output: str) -> None:
    ids = torch.tensor([IDS])
    if output == "translation":
        tiny.assert_close(ours.trace(ids=IDS, target_ids=TARGET).logits, model(ids, torch.tensor([TARGET]))[0])
    elif output == "body":
        tiny.assert_close(ours.trace(ids=IDS).residual("encoder.final"), model.body(ids)[0])
    else:
        tiny.assert_close(ours.trace(ids=IDS).logits, model(ids)[0])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sample(3)
def test_the_numbers_are_those_of_the_author(name: str, tmp_path: Path) -> None:
    model, answers = made(name), MODELS[name].answers
    weights = model.state_dict()
    torch.save({"model_state_dict": weights, "epoch": 3, "optimizer_state_dict": {"state": {}}}, tmp_path / "a.pt")
    torch.save({f"module.{key}": value for key, value in weights.items()}, tmp_path / "b.pth")
    plain = {key: value.clone().contiguous() for key, value in weights.items() if not value.is_complex()}
    save_file(plain, tmp_path / "c.safetensors")  # which sorts the names
    for path in sorted(tmp_path.iterdir()):
        said: dict[str, Any] = dict(answers)
        if len(plain) < len(weights) and path.suffix == ".safetensors":  # without the complex buffer more is open
            said |= dict(positions="rope_pairs", rope_theta=500, max_positions=12)
        try:
            questions = load(path).report.questions
        except UnansweredError as error:
            questions = error.questions
        assert said.keys() <= {question.name for question in questions}, path.name
        open_still = {q.name for q in questions if q.usual is None and not q.optional}
        assert open_still <= said.keys(), path.name
        same(load(path, **said), model, MODELS[name].output)


def test_every_tensor_has_a_fate_by_its_own_name(tmp_path: Path) -> None:
    weights = made("raw heads").state_dict()
    torch.save(weights, tmp_path / "model.pt")
    report = load(tmp_path / "model.pt", **MODELS["raw heads"].answers).report
    assert {fate.name: fate.shape for fate in report.tensors} == {k: tuple(v.shape) for k, v in weights.items()}
    by_name = {fate.name: fate for fate in report.tensors}
    assert by_name["blocks.1.mha.heads.2.WK"].becomes == ("decoder.layers.1.self_attention.W_K.weight",)
    assert report.config.n_heads == handmade_models.H


def test_what_transformer_lens_says_beside_its_weights(tmp_path: Path) -> None:
    said = dict(n_ctx=12, act_fn="gelu_new", normalization_type="LNPre", attention_dir="causal", eps=1e-5)
    model = made("TransformerLens, folded")
    torch.save({"state_dict": model.state_dict(), "cfg": said}, tmp_path / "model.pt")
    same(load(tmp_path / "model.pt"), model, "logits")
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
@pytest.mark.parametrize("outputs", [handmade_models.V - 1, 2])
def test_transformer_lens_with_fewer_logits_than_tokens(outputs: int, biased: bool, tmp_path: Path) -> None:
    """Its d_vocab_out: a model that adds reads "=" as well, one that checks brackets answers yes or no."""
    model = tiny.randomise(handmade_models.Hooked(outputs=outputs)).eval()
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
    weights = tiny.randomise(handmade_models.Hooked(outputs=30)).state_dict()  # which are no ids that it reads
    torch.save(weights, tmp_path / "model.pt")
    report = load(tmp_path / "model.pt", activation="gelu_tanh").report
    assert not report.has_head
    assert any("this head is left out" in str(line) and "[16, 30]" in str(line) for line in report.assumptions)
    for name, shape in (("unembed.W_U", (12, 22)), ("unembed.b_U", (23,))):
        torch.save({**weights, name: torch.zeros(shape)}, tmp_path / "model.pt")
        with pytest.raises(CheckpointError, match=r"unembed\.W_U"):
            load(tmp_path / "model.pt", activation="gelu_tanh")


def test_an_answer_that_the_tensors_give_is_taken_where_it_is_theirs(tmp_path: Path) -> None:
    model = tiny.randomise(strangers.LectureGPT()).eval()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    said: dict[str, Any] = dict(norm_order="pre", activation="relu", scaled_embedding=False)
    same(load(tmp_path / "model.pt", **said, n_heads="4", causal=True), model, "logits")
    with pytest.raises(CheckpointError, match="n_heads=2: the tensors say 4; causal=false: the tensors say True"):
        load(tmp_path / "model.pt", **said, n_heads=2, causal=False)


def test_a_network_that_has_one_bias_of_two(tmp_path: Path) -> None:
    model = tiny.randomise(strangers.LectureGPT()).eval()
    for block in model.blocks:
        block.ffwd.net[2].bias = None
    torch.save(model.state_dict(), tmp_path / "model.pt")
    same(load(tmp_path / "model.pt", norm_order="pre", activation="relu", scaled_embedding=False), model, "logits")


def test_a_buffer_that_counts_the_positions_is_no_weight(tmp_path: Path) -> None:
    model = tiny.randomise(strangers.LectureGPT()).eval()
    torch.save({**model.state_dict(), "position_ids": torch.arange(12)[None]}, tmp_path / "model.pt")
    ours = load(tmp_path / "model.pt", norm_order="pre", activation="relu", scaled_embedding=False)
    same(ours, model, "logits")
    fate = next(fate for fate in ours.report.tensors if fate.name == "position_ids")
    assert str(fate.note) == "the numbers of the positions"
