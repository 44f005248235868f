"""Models as strangers save them: those that a layout describes give their author's numbers, the others are refused.

Nothing is asked about a file that no answer can open, and what is said of it is what stands in it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from tests import strangers, tiny
from tests.strangers import FF, D, H, V
from vizformer.checkpoints import Opened, UnansweredError, load
from vizformer.errors import CheckpointError, TokenizerError

IDS, TARGET = [3, 7, 7, 1, 22, 0, 9], [1, 5, 4]
TORCH: dict[str, Any] = dict(n_heads=H, norm_order="post", activation="relu", scaled_embedding=False)
OPEN: dict[str, dict[str, Any]] = {
    "wikitext": {**TORCH, "scaled_embedding": True, "causal": True},
    "inherited": {**TORCH, "scaled_embedding": True, "causal": True},
    "seq2seq": {**TORCH, "scaled_embedding": True, "bos_id": 1, "eos_id": 2},
    "classifier": {**TORCH, "causal": False},
    "deep head": {**TORCH, "causal": False, "norm_order": "pre", "activation": "gelu"},
    "nanogpt": dict(n_heads=H, activation="gelu"),
}
TRANSLATORS = ("seq2seq",)
WITHOUT_HEAD = ("classifier", "deep head")
WITHOUT = "contains only weights"
REFUSED: dict[str, str] = {
    "continuous": r'"input_net.1.weight" belongs to no part of the model that the layout of nn.TransformerEncoder describes',
    "class token": '"(model.)?cls_token" belongs to no part of the model that the layout of nn.TransformerEncoder describes',
    "recurrent": rf'{WITHOUT}.*"lstm.weight_[ih]h_l0"',
    "pictures": rf'{WITHOUT}.*"conv1.weight"',
    "lecture gpt": WITHOUT,
    "student translator": WITHOUT,
    "packed": WITHOUT,
    "nanogpt, other norms": '"(transformer.)?h.0.ln_1.weight" .*is missing',
    "nanogpt, qk norm": '"(transformer.)?h.0.attn.q_norm.weight" belongs to no part of the model that',
    "nanogpt, no positions": 'lacks "(transformer.)?wpe.weight", the learned position embeddings',
}

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def made(kind: str) -> nn.Module:
    return tiny.randomise(strangers.KINDS[kind]()).eval()


def test_every_kind_is_one_or_the_other() -> None:
    assert len(strangers.KINDS) >= 10
    assert OPEN.keys() | REFUSED.keys() == strangers.KINDS.keys()
    assert not OPEN.keys() & REFUSED.keys()


def ways(weights: dict[str, Tensor], folder: Path) -> list[Path]:
    """As a state dict, as safetensors (which sorts the names), and as Lightning saves it under several names."""
    paths = [folder / name for name in ("model.pt", "weights.safetensors", "last.ckpt", "net.ckpt", "loss.ckpt")]
    torch.save(weights, paths[0])
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, paths[1])
    torch.save(strangers.lightning(weights), paths[2])
    torch.save(strangers.lightning(weights, "net.transformer."), paths[3])
    beside = strangers.lightning(weights)
    beside["state_dict"]["criterion.weight"] = torch.ones(3)  # of the loss: the names then share no beginning
    torch.save(beside, paths[4])
    return paths


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", OPEN)
def test_those_of_a_layout_open_and_are_exact(kind: str, tmp_path: Path) -> None:
    model = made(kind)
    for path in ways(model.state_dict(), tmp_path):
        with pytest.raises(UnansweredError) as caught:
            load(path)
        asked = {question.name for question in caught.value.questions}
        assert OPEN[kind].keys() <= asked, path.name
        same(load(path, **OPEN[kind]), model, kind)


def same(ours: Opened, model: nn.Module, kind: str) -> None:
    ids = torch.tensor([IDS])
    with torch.no_grad():
        if kind in TRANSLATORS:
            tiny.assert_close(ours.trace(ids=IDS, target_ids=TARGET).logits, model(ids, torch.tensor([TARGET]))[0])
        elif kind in WITHOUT_HEAD:
            tiny.assert_close(ours.trace(ids=IDS).residual("encoder.final"), model.body(ids)[0])
        else:
            tiny.assert_close(ours.trace(ids=IDS).logits, model(ids)[0])
    assert ours.report.has_head is (kind not in WITHOUT_HEAD)
    assumed = [str(message) for message in ours.report.assumptions]
    assert any("there is no tokenizer: numbers separated by spaces are read as token ids" in said for said in assumed)
    with pytest.raises(TokenizerError, match="came without a tokenizer: type token ids from 0 to"):
        ours.trace("cat")


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.sample(1)
def test_the_others_are_refused_without_a_question(kind: str, tmp_path: Path) -> None:
    for path in ways(made(kind).state_dict(), tmp_path)[:3]:
        for answers in ({}, dict(n_heads=4), dict(colour="red")):
            with pytest.raises(CheckpointError, match=REFUSED[kind]) as caught:
                load(path, **answers)
            assert not isinstance(caught.value, UnansweredError)
            said = str(caught.value)
            assert path.name in said
            assert "config.json and its tokenizer" not in said
            assert len(said) < 2000


@pytest.mark.parametrize(
    ("names", "family"),
    [
        ("bert.encoder.layer.0.attention.self.query.weight", "BERT / RoBERTa"),
        ("model.layers.0.self_attn.q_proj.weight", "LLaMA"),
        ("model.decoder.layers.0.self_attn.q_proj.weight", "BART / Marian / OPT"),
        ("encoder.block.0.layer.0.SelfAttention.q.weight", "T5"),
        ("gpt_neox.layers.0.attention.query_key_value.weight", "GPT-NeoX"),
        ("distilbert.transformer.layer.0.attention.q_lin.weight", "DistilBERT"),
    ],
)
def test_those_of_transformers_are_sent_to_their_config(names: str, family: str, tmp_path: Path) -> None:
    torch.save({names: torch.zeros(D, D), "other.weight": torch.zeros(2, 2)}, tmp_path / "model.pt")
    said = rf"holds 2 tensors with names that `transformers` gives {re.escape(family)}, .*put it and the tokenizer"
    with pytest.raises(CheckpointError, match=said):
        load(tmp_path / "model.pt")


# --- heads of other tasks ----------------------------------------------------------------------------------------


class Around(nn.Module):
    """An encoder with modules before and after it."""

    def __init__(self, **beside: nn.Module) -> None:
        super().__init__()
        for name, module in beside.items():
            self.add_module(name, module)
        self.encoder = strangers.stack()


def opened(tmp_path: Path, **beside: nn.Module) -> Opened:
    model = tiny.randomise(Around(**beside))
    torch.save(strangers.lightning(model.state_dict()), tmp_path / "model.ckpt")
    return load(tmp_path / "model.ckpt", **TORCH, causal=False, positions="none")


@pytest.mark.parametrize(
    ("heads", "left_out"),
    [
        (dict(classifier=lambda: nn.Linear(D, 3)), {"classifier"}),
        (dict(classifier=lambda: nn.Linear(D, 3, bias=False)), {"classifier"}),
        (dict(fc1=lambda: nn.Linear(D, 8), fc2=lambda: nn.Linear(8, 2)), {"fc1", "fc2"}),
        (
            dict(output_net=lambda: nn.Sequential(nn.Linear(D, D), nn.LayerNorm(D), nn.ReLU(), nn.Linear(D, V))),
            {"output_net"},
        ),  # it predicts tokens, but not as one matrix does
        (dict(mlp_head=lambda: nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 3))), {"mlp_head"}),
        (dict(pooler=lambda: nn.Linear(D, D), classifier=lambda: nn.Linear(D, 3)), {"pooler", "classifier"}),
        (dict(head=lambda: nn.Sequential(nn.Linear(2 * D, D), nn.BatchNorm1d(D), nn.Linear(D, 3))), {"head"}),
        (dict(regressor=lambda: nn.Linear(D, 1), out=lambda: nn.Linear(D, 2)), {"regressor", "out"}),
    ],
)
def test_heads_of_other_tasks_are_left_out_and_named(
    heads: dict[str, Callable[[], nn.Module]], left_out: set[str], tmp_path: Path
) -> None:
    made = {name: head() for name, head in heads.items()}
    ours = opened(tmp_path, embedding=nn.Embedding(V, D), **made)
    assert not ours.report.has_head
    unused = {tensor.name for tensor in ours.report.with_fate("unused")}
    assert unused == {f"{name}.{inner}" for name, module in made.items() for inner in module.state_dict()}
    assumed = "\n".join(str(message) for message in ours.report.assumptions)
    for name in left_out:
        assert f'"{name}" comes after the last layer: this head is left out ("{name}.' in assumed
    assert (
        "no output layer that predicts tokens: logits are computed with the embedding table and mean nothing" in assumed
    )


@pytest.mark.parametrize(
    "beside",
    [
        dict(project=lambda: nn.Linear(D, D)),  # might stand in front
        dict(linear=lambda: nn.Linear(2 * D, D)),
        dict(down=lambda: nn.Linear(D, 5), up=lambda: nn.Linear(5, D)),
        dict(cls=lambda: nn.Embedding(1, D)),
        dict(conv=lambda: nn.Conv1d(D, D, 3)),
    ],
    ids=lambda beside: "-".join(beside),
)
def test_what_may_stand_before_or_in_between_is_never_left_out(
    beside: dict[str, Callable[[], nn.Module]], tmp_path: Path
) -> None:
    made = {name: module() for name, module in beside.items()}
    with pytest.raises(CheckpointError, match=f'"{next(iter(beside))}|"up'):
        opened(tmp_path, embedding=nn.Embedding(V, D), classifier=nn.Linear(D, 3), **made)


def test_the_layer_that_the_others_were_copied_from_is_left_aside(tmp_path: Path) -> None:
    ours = opened(tmp_path, embedding=nn.Embedding(V, D), encoder_layer=strangers.layer())
    assert {tensor.name.split(".")[0] for tensor in ours.report.with_fate("unused")} == {"encoder_layer"}
    assert any('"encoder_layer" is taken for the layer' in str(message) for message in ours.report.assumptions)
    with pytest.raises(CheckpointError):
        opened(tmp_path, embedding=nn.Embedding(V, D), encoder_layer=nn.TransformerEncoderLayer(D, H, FF + 1))


def test_a_head_that_predicts_tokens_is_kept_beside_another(tmp_path: Path) -> None:
    ours = opened(tmp_path, embedding=nn.Embedding(V, D), lm_head=nn.Linear(D, V), classifier=nn.Linear(D, 3))
    assert ours.report.has_head
    assert {tensor.name for tensor in ours.report.with_fate("unused")} == {"classifier.weight", "classifier.bias"}


def test_nothing_is_asked_about_what_holds_no_numbers(tmp_path: Path) -> None:
    weights = made("nanogpt").state_dict()
    weights["transformer.ln_f.weight"][0] = torch.nan
    torch.save(weights, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=r'"transformer.ln_f.weight" holds NaN') as caught:
        load(tmp_path / "model.pt")
    assert not isinstance(caught.value, UnansweredError)


def test_a_tokenizer_of_another_model_is_left_aside(tmp_path: Path) -> None:
    torch.save(made("nanogpt").state_dict(), tmp_path / "model.pt")
    tiny.tokenizer().save(tmp_path / "tokenizer.json")
    ours = load(tmp_path / "model.pt", **OPEN["nanogpt"])
    same(ours, made("nanogpt"), "nanogpt")
    assert any(
        "belongs to another model, and VizFormer does not use it" in str(note) for note in ours.report.assumptions
    )


def test_sine_waves_are_no_choice_for_an_odd_width(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(15, 3, 24, batch_first=True)
    model = nn.ModuleDict(dict(embedding=nn.Embedding(V, 15), encoder=nn.TransformerEncoder(layer, 2)))
    torch.save(model.state_dict(), tmp_path / "model.pt")
    with pytest.raises(UnansweredError) as caught:
        load(tmp_path / "model.pt")
    (positions,) = [question for question in caught.value.questions if question.name == "positions"]
    assert positions.choices == ("none",)
    assert load(tmp_path / "model.pt", **{**TORCH, "n_heads": 3, "causal": True}).model.config.positions == "none"
