"""Bare weights: found in what people save, asked about what they do not say, and never taken for more than they are."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import save_file
from torch import Tensor, nn

from tests import tiny
from vizformer import cli
from vizformer.checkpoints import UnansweredError, describe, inspect, load, save
from vizformer.errors import CheckpointError, TokenizerError, VizformerError

ANSWERS: dict[str, Any] = dict(n_heads=4, activation="gelu")
V, D, LAYERS, FF, LONGEST = 23, 16, 2, 24, 12


def nano_gpt(seed: int = 0) -> dict[str, Tensor]:
    """A state dict with nanoGPT's names."""
    shapes: dict[str, tuple[int, ...]] = {"transformer.wte.weight": (V, D), "transformer.wpe.weight": (LONGEST, D)}
    for i in range(LAYERS):
        h = f"transformer.h.{i}"
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"{h}.{norm}.weight": (D,), f"{h}.{norm}.bias": (D,)}
        linears = (("attn.c_attn", 3 * D, D), ("attn.c_proj", D, D), ("mlp.c_fc", FF, D), ("mlp.c_proj", D, FF))
        for name, out, into in linears:
            shapes |= {f"{h}.{name}.weight": (out, into), f"{h}.{name}.bias": (out,)}
    shapes |= {"transformer.ln_f.weight": (D,), "transformer.ln_f.bias": (D,), "lm_head.weight": (V, D)}
    dice = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=dice) * 0.3 for name, shape in shapes.items()}


def encoder(**beside: nn.Module) -> nn.Module:
    """nn.TransformerEncoder, with modules beside it."""
    layer = nn.TransformerEncoderLayer(D, 4, FF, dropout=0.0, batch_first=True)
    modules = nn.ModuleDict(beside)
    modules["encoder"] = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
    return tiny.randomise(modules)


def saved(content: object, path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    torch.save(content, path)
    return path


# --- where the weights are ---------------------------------------------------------------------------------------


def test_however_they_are_wrapped_it_is_the_same_model(tmp_path: Path) -> None:
    weights = nano_gpt()
    reference = load(saved(weights, tmp_path / "plain.pt"), **ANSWERS)
    expected = reference.trace(ids=[3, 1, 4]).logits
    wrapped: list[object] = [
        {"state_dict": weights, "epoch": 3},
        {"model": weights, "optimizer": {"state": {0: {"step": torch.tensor(5.0)}}}, "iter_num": 7},
        {"model": {"state_dict": weights}},
        {f"module.{name}": tensor for name, tensor in weights.items()},
        {f"_orig_mod.{name}": tensor for name, tensor in weights.items()},
        {f"_orig_mod.module.{name}": tensor for name, tensor in weights.items()},
        {"state_dict": {f"model.{name}": tensor for name, tensor in weights.items()}},
        {name.replace("transformer.", "transformer._orig_mod."): tensor for name, tensor in weights.items()},
    ]
    for content in wrapped:
        opened = load(saved(content, tmp_path / "wrapped.pt"), **ANSWERS)
        assert torch.equal(opened.trace(ids=[3, 1, 4]).logits, expected)
        assert opened.model.config == reference.model.config


def test_buffers_that_play_no_part_refuse_no_file(tmp_path: Path) -> None:
    """As torch.optim.swa_utils.AveragedModel saves it; a counter, and the numbers of positions, whatever they are called."""
    weights = nano_gpt()
    expected = load(saved(weights, tmp_path / "plain.pt"), **ANSWERS).trace(ids=[3, 1, 4]).logits
    buffers = {"n_averaged": torch.tensor(5), "module.seen": torch.tensor([7]), "module.places": torch.arange(12)[None]}
    averaged = {f"module.{name}": tensor for name, tensor in weights.items()} | buffers
    ours = load(saved(averaged, tmp_path / "averaged.pt"), **ANSWERS)
    assert torch.equal(ours.trace(ids=[3, 1, 4]).logits, expected)
    notes = {fate.name: str(fate.note) for fate in ours.report.with_fate("unused")}
    assert notes["places"] == "the numbers of the positions"
    assert all("a counter" in notes[name] for name in ("n_averaged", "seen"))
    for odd in (torch.tensor(0.5), torch.tensor([1, 0, 2]), torch.ones(12)):
        with pytest.raises(CheckpointError, match=r'"odd" belongs to no part'):
            load(saved(weights | {"odd": odd}, tmp_path / "odd.pt"), **ANSWERS)


def test_under_a_name_of_its_authors_own(tmp_path: Path) -> None:
    """One state dict in a file is the model's, whatever it is called; those of its modules are put together."""
    weights = nano_gpt()
    expected = load(saved(weights, tmp_path / "plain.pt"), **ANSWERS).trace(ids=[3, 1, 4]).logits
    optimizer = {"state": {}, "param_groups": [{"lr": 0.1}]}
    for name in ("transformer", "my_gpt", "params"):
        path = saved(
            {name: weights, "opt": optimizer, "ema_state": {"a": torch.zeros(2)}, "epoch": 1}, tmp_path / "x.pt"
        )
        assert torch.equal(load(path, **ANSWERS).trace(ids=[3, 1, 4]).logits, expected)
    with pytest.raises(CheckpointError, match="something else beside tensors"):
        load(saved({"first": weights, "second": weights}, tmp_path / "x.pt"), **ANSWERS)
    model = tiny.randomise(nn.Transformer(D, 4, LAYERS, LAYERS, FF))
    halves = {"encoder": model.encoder.state_dict(), "decoder": model.decoder.state_dict(), "optimizer": optimizer}
    with pytest.raises(UnansweredError) as caught:
        load(saved(halves, tmp_path / "x.pt"))
    assert {"bos_id", "norm_order"} <= {question.name for question in caught.value.questions}


@pytest.mark.parametrize(
    "name", ["model.pt", "x.pth", "x.ckpt", "pytorch_model.bin", "model.safetensors", "x.safetensors"]
)
def test_a_folder_with_nothing_else(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    if name.endswith("safetensors"):
        save_file(nano_gpt(), folder / name)
    else:
        saved(nano_gpt(), folder / name)
    opened = load(folder, **ANSWERS)
    assert opened.name == "mine"
    assert opened.report.format == "state-dict"
    assert torch.equal(opened.trace(ids=[3]).logits, load(folder / name, **ANSWERS).trace(ids=[3]).logits)


def test_several_files_in_a_folder(tmp_path: Path) -> None:
    for name in ("epoch1.pt", "epoch2.pt", "optimizer.pt", "training_args.bin"):
        saved(nano_gpt(), tmp_path / name)
    with pytest.raises(CheckpointError, match=r'several files of weights: "epoch1.pt", "epoch2.pt". Give the path of'):
        load(tmp_path, **ANSWERS)
    (tmp_path / "epoch1.pt").unlink()
    assert load(tmp_path, **ANSWERS).report.files.keys() == {"epoch2.pt"}


@pytest.mark.parametrize("content", [{}, {"epoch": 1}, [torch.zeros(2)], torch.zeros(2), {"model": {}}, {"model": 3}])
def test_no_state_dict_in_the_file(content: object, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model.pt (holds|contains)"):
        load(saved(content, tmp_path / "model.pt"))


def test_nothing_in_the_file_is_run(tmp_path: Path) -> None:
    touched = tmp_path / "touched"

    class Bomb:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return Path.touch, (touched,)

    saved({"model": nano_gpt(), "model_args": Bomb()}, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=r"holds more than tensors"):
        load(tmp_path / "model.pt", **ANSWERS)
    assert not touched.exists()


def test_names_of_another_model(tmp_path: Path) -> None:
    saved({"conv1.weight": torch.zeros(3, 3, 1, 1)}, tmp_path / "resnet.pt")
    with pytest.raises(CheckpointError, match=r'It holds 1 tensors: "conv1.weight" \[3, 3, 1, 1\]'):
        load(tmp_path / "resnet.pt")


@pytest.mark.parametrize("prefix", ["a{b}.", "{0}.", "{", "\x1b[0m.", "a\nb.", "." * 3])
def test_names_with_a_meaning_elsewhere(prefix: str, tmp_path: Path) -> None:
    for weights in (nano_gpt(), encoder().state_dict()):
        saved({prefix + name: tensor for name, tensor in weights.items()}, tmp_path / "model.pt")
        with suppress(VizformerError):  # without the prefix that all share it may open
            load(tmp_path / "model.pt", **ANSWERS)
        other = {f"{prefix}{name}": tensor for name, tensor in weights.items()} | {"odd.name": torch.zeros(2)}
        with pytest.raises(CheckpointError) as caught:
            load(saved(other, tmp_path / "model.pt"), **ANSWERS)
        assert str(caught.value).isprintable()


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["my-gpt", "internlm", ["gpt2"], 7])
@pytest.mark.parametrize("file", ["model.safetensors", "weights.safetensors", "pytorch_model.bin", "weights.pt"])
def test_weights_beside_a_config_of_unknown_type_open_by_their_names(kind: object, file: str, tmp_path: Path) -> None:
    """As the folder and as the file alike, and the report says that the type was not followed."""
    if file.endswith(".safetensors"):
        save_file(nano_gpt(), tmp_path / file)
    else:
        saved(nano_gpt(), tmp_path / file)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "n_head": 4}))
    expected = load(saved(nano_gpt(), tmp_path / "alone" / "x.pt"), **ANSWERS).trace(ids=[3, 1]).logits
    for source in (tmp_path, tmp_path / file):
        with pytest.raises(UnansweredError, match=r"open questions: activation \("):
            load(source)
        opened = load(source, activation="gelu")
        assert torch.equal(opened.trace(ids=[3, 1]).logits, expected)
        assumed = [str(message) for message in opened.report.assumptions]
        assert any(
            f"model_type={json.dumps(kind)}, which does not open: VizFormer goes by the names of" in said
            for said in assumed
        )
        assert 'n_heads = 4: "config.json" says "n_head"' in assumed


def test_where_neither_config_nor_names_open_both_are_said(tmp_path: Path) -> None:
    save_file({"net.0.weight": torch.zeros(3, 3)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "my-net"}))
    for source in (tmp_path, tmp_path / "model.safetensors"):
        with pytest.raises(CheckpointError, match='says model_type="my-net", which is not supported') as caught:
            load(source, **ANSWERS)
        assert "contains only weights" in str(caught.value)


@pytest.mark.parametrize("kind", ["imagegpt", "mamba"])
def test_weights_of_a_type_that_its_own_code_computes_are_not_opened_by_their_names(kind: str, tmp_path: Path) -> None:
    save_file(nano_gpt(), tmp_path / "model.safetensors")  # (names that mean something else in these)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(CheckpointError, match="says itself how it is built"):
        load(tmp_path, **ANSWERS)
    with pytest.raises(CheckpointError, match=r"not know as a model of texts|does not fit"):
        load(tmp_path)


def test_a_folder_that_says_what_it_is_is_not_taken_for_bare_weights(tmp_path: Path) -> None:
    save_file(nano_gpt(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(CheckpointError, match=r"is a file; a model is a folder"):
        load(tmp_path / "model.safetensors", **ANSWERS)
    with pytest.raises(CheckpointError, match=r"zh-en says itself how it is built.*Leave out n_heads"):
        load("zh-en", n_heads=4)


# --- what they do not say ----------------------------------------------------------------------------------------


def test_every_open_question_at_once(tmp_path: Path) -> None:
    path = saved(encoder(embedding=nn.Embedding(V, D)).state_dict(), tmp_path / "model.pt")
    with pytest.raises(UnansweredError) as caught:
        load(path, n_heads=2)
    questions = {question.name: question for question in caught.value.questions}
    assert questions["n_heads"].choices == (1, 2, 4, 8, 16)
    assert questions["norm_order"].choices == ("post", "pre")
    assert questions["causal"].choices == (False, True)
    assert questions["norm_eps"].usual == 1e-5
    said = str(caught.value)
    for name in ("norm_order", "activation", "causal", "scaled_embedding", "positions"):
        assert f"{name} (" in said, name
    assert "n_heads (" not in said
    assert "If you do not answer, VizFormer takes: n_heads=2, norm_eps=1e-05, max_positions=512" in said
    answers: dict[str, Any] = {q.name: q.choices[0] for q in caught.value.questions if q.choices}
    assert load(path, **answers).trace(ids=[1, 2]).logits.isfinite().all()


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (dict(n_heads=3), "n_heads=3: it must be 1 / 2 / 4 / 8 / 16"),
        (dict(n_heads=True), "n_heads=true: it must be"),
        (dict(activation="tanh"), 'activation="tanh": it must be relu / gelu'),
        (dict(norm_eps=0), "norm_eps=0: it must be a number above 0"),
        (dict(norm_eps="nan"), "norm_eps="),
        (dict(norm_order="pre", colour="red"), r'"norm_order" is not a question here; "colour" is not a question here'),
    ],
    ids=str,
)
def test_answers_that_are_none(answers: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = saved(nano_gpt(), tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=said) as caught:
        load(path, **{**ANSWERS, **answers})
    assert "You can give: n_heads, activation, norm_eps" in str(caught.value)


def test_answers_as_text(tmp_path: Path) -> None:
    """As a link and the command line write them."""
    path = saved(encoder(embedding=nn.Embedding(V, D)).state_dict(), tmp_path / "model.pt")
    opened = load(
        path,
        n_heads="2",
        norm_order="pre",
        activation="relu",
        causal="true",
        scaled_embedding="false",
        positions="none",
        norm_eps="1e-3",
        max_positions="9",
    )
    config = opened.model.config
    assert (config.n_heads, config.n_decoder_layers, config.norm_eps, config.max_positions) == (2, 2, 1e-3, 9)
    assert config.scaled_embedding is False


def test_what_the_file_says_itself(tmp_path: Path) -> None:
    said = dict(n_layer=LAYERS, n_head=2, n_embd=D, block_size=LONGEST, bias=True, vocab_size=V, activation="gelu_new")
    opened = load(saved({"model": nano_gpt(), "model_args": said}, tmp_path / "ckpt.pt"))
    assert opened.model.config.n_heads == 2
    assert opened.model.config.activation == "gelu_tanh"
    assumed = [str(message) for message in opened.report.assumptions]
    assert 'n_heads = 2: "model_args" says "n_head"' in assumed
    assert "norm_eps = 1e-05: the usual value; no file gives it" in assumed
    opened = load(tmp_path / "ckpt.pt", n_heads=8)
    assert opened.model.config.n_heads == 8
    assert any('although "model_args" says 2' in str(message) for message in opened.report.assumptions)


def test_what_lies_beside_it(tmp_path: Path) -> None:
    path = saved(
        {
            "state_dict": encoder(tok=nn.Embedding(V, D)).state_dict(),
            "hyper_parameters": {"nhead": 4, "norm_first": True},
        },
        tmp_path / "model.ckpt",
    )
    fields = dict(activation="relu", causal=True, scaled_embedding=False, positions="none", layer_norm_eps=1e-3)
    fields |= dict(batch_first=True, tie_weights=False, logit_scale="nothing")
    (tmp_path / "config.json").write_text(json.dumps(fields))
    for source in (path, tmp_path):
        config = load(source).model.config
        assert (config.n_heads, config.norm_order, config.activation, config.norm_eps) == (4, "pre", "relu", 1e-3)
        assert config.architecture == "decoder-only"


def test_two_that_disagree_say_nothing(tmp_path: Path) -> None:
    said = {"model": nano_gpt(), "model_args": {"n_head": 4}, "config": {"n_head": 2, "activation": "gelu"}}
    with pytest.raises(UnansweredError, match=r"open questions: n_heads \("):
        load(saved(said, tmp_path / "model.pt"))


def test_sizes_that_the_tensors_contradict_are_said(tmp_path: Path) -> None:
    said = dict(n_head=4, activation="gelu", vocab_size=99)
    report = inspect(saved({"model": nano_gpt(), "model_args": said}, tmp_path / "model.pt"))
    assert any("vocab_size=99, the tensors say 23" in str(message) for message in report.assumptions)


# --- the report --------------------------------------------------------------------------------------------------


def test_the_report_claims_no_more_than_the_assumptions(tmp_path: Path) -> None:
    path = saved(nano_gpt(), tmp_path / "model.pt")
    report = inspect(path, **ANSWERS)
    assert report.n_parameters == sum(tensor.numel() for tensor in nano_gpt().values())
    assert {fate.fate for fate in report.tensors} == {"used"}
    text = describe(report)
    assert "model: a nanoGPT / minGPT model (decoder-only; bare weights)" in text
    assert "n_heads = 4: given when the model was opened" in text
    assert "there is no tokenizer: numbers separated by spaces are read as token ids, 0 to 22" in text
    assert text.endswith("what is shown of it is consistent under these assumptions.")


def test_on_the_command_line(tmp_path: Path) -> None:
    path = str(saved(nano_gpt(), tmp_path / "model.pt"))
    result = CliRunner().invoke(cli.main, ["inspect", path])
    assert result.exit_code == 1
    assert (
        "activation (Which activation function does the feed-forward network use?): relu / gelu / gelu_tanh / "
        "quick_gelu / silu" in result.output
    )
    result = CliRunner().invoke(cli.main, ["inspect", path, "--assume", "n_heads=4", "--assume", "activation=gelu"])
    assert result.exit_code == 0, result.output
    assert "heads       4 of width 4" in result.output
    result = CliRunner().invoke(cli.main, ["inspect", path, "--assume", "n_heads"])
    assert result.exit_code == 2
    assert "NAME=VALUE" in result.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w.pop("transformer.h.1.ln_2.bias"), '"transformer.h.1.ln_2.bias" is missing'),
        (
            lambda w: w.update({"transformer.h.0.attn.q_norm.weight": torch.ones(4)}),
            "belongs to no part of the model that",
        ),
        (
            lambda w: w.update({"transformer.ln_f.weight": torch.ones(3)}),
            r"has shape \[3\], but by the layout of nanoGPT",
        ),
        (lambda w: w["transformer.wte.weight"].fill_(torch.nan), "holds NaN or infinite numbers"),
        (lambda w: w.pop("transformer.wpe.weight"), "the learned position embeddings of GPT-2"),
        (lambda w: w.update({"transformer.wte.weight": torch.zeros(3)}), r"has shape \[3\], but must be a matrix"),
        (lambda w: w.update({"transformer.h.0.attn.bias": torch.ones(12, 12).triu()}), 'attn.bias" belongs to'),
        (lambda w: w.update({n: t.to(torch.int8) for n, t in w.items()}), "quantised weights are not opened"),
    ],
)
def test_tensors_that_do_not_fit(change: Callable[[dict[str, Tensor]], object], said: str, tmp_path: Path) -> None:
    weights = nano_gpt()
    change(weights)
    with pytest.raises(CheckpointError, match=said):
        load(saved(weights, tmp_path / "model.pt"), **ANSWERS)


ENCODER: dict[str, Any] = dict(
    n_heads=4, norm_order="post", activation="relu", causal=False, positions="none", scaled_embedding=False
)


def test_a_table_without_a_telling_name(tmp_path: Path) -> None:
    """Told by its rows, as many as the output layer's; positions and tokens are not mistaken for each other."""
    model = encoder(e=nn.Embedding(V, D), pe=nn.Embedding(LONGEST, D), out=nn.Linear(D, V))
    answers = {name: answer for name, answer in ENCODER.items() if name != "positions"}
    opened = load(saved(model.state_dict(), tmp_path / "model.pt"), **answers)
    assert torch.equal(opened.model.embedding.weight, model.get_parameter("e.weight"))
    positions = opened.model.get_parameter("position_embedding.weight")
    assert torch.equal(positions, model.get_parameter("pe.weight"))
    assert opened.report.has_head
    assert any('"e.weight" is the table of token' in str(message) for message in opened.report.assumptions)


def test_a_head_of_another_task_is_left_out(tmp_path: Path) -> None:
    model = encoder(embedding=nn.Embedding(V, D), classifier=nn.Linear(D, 3))
    report = load(saved(model.state_dict(), tmp_path / "model.pt"), **ENCODER).report
    assert not report.has_head
    assert {fate.name for fate in report.with_fate("unused")} == {"classifier.weight", "classifier.bias"}
    assert any('"classifier" comes after the last layer: this' in str(message) for message in report.assumptions)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (lambda: encoder(project=nn.Linear(5, D)), r'"project.weight" belongs to no part of the model'),
        (lambda: encoder(e=nn.Embedding(V, D), project=nn.Linear(D, D)), '"project.weight" belongs to no part'),
        (
            lambda: encoder(embedding=nn.Embedding(V, D), down=nn.Linear(D, 5), up=nn.Linear(5, D)),
            r'"up.weight" belongs to no part of the model',
        ),
        (lambda: encoder(project=nn.Linear(D, D, bias=False)), '"project.weight" belongs to no part'),
        (lambda: encoder(src_emb=nn.Embedding(V, D), tgt_emb=nn.Embedding(V, D)), "several embedding tables"),
        (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(D, 4, FF), 2), "arrangement that does not open"),
    ],
)
def test_arrangements_that_do_not_open(module: Callable[[], nn.Module], said: str, tmp_path: Path) -> None:
    path = saved(module().state_dict(), tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=said) as caught:
        load(path)
    assert not isinstance(caught.value, UnansweredError)


@pytest.mark.parametrize("layout", ["vizformer", "hugging-face"])
def test_saved_with_what_was_assumed(layout: Any, tmp_path: Path) -> None:
    """Then config.json says what the weights did not."""
    opened = load(saved(nano_gpt(), tmp_path / "model.pt"), **ANSWERS)
    save(opened, tmp_path / "saved", torch.float32, layout=layout)
    again = load(tmp_path / "saved")
    assert again.model.config == opened.model.config
    tiny.assert_close(again.trace("3 14 0").logits, opened.trace("3 14 0").logits, 1e-6)
    with pytest.raises(TokenizerError, match="came without a tokenizer"):
        again.trace("cat")


# --- texts -------------------------------------------------------------------------------------------------------


def test_without_a_tokenizer_numbers_are_ids(tmp_path: Path) -> None:
    opened = load(saved(nano_gpt(), tmp_path / "model.pt"), **ANSWERS)
    assert [token.id for token in opened.encode(" 3 14  0,\n22")] == [3, 14, 0, 22]
    assert [token.text for token in opened.encode("3 14")] == ["3", "14"]
    assert torch.equal(opened.trace("3 14 0").logits, opened.trace(ids=[3, 14, 0]).logits)
    generated = opened.generate("3 14", max_new=3)
    assert generated.text == " ".join(map(str, generated.ids))
    wrong = {"我有一只猫。": "我有一只猫。", "3 \x1b": "u001b", "3 23": '"23"', "3 -1": '"-1"', "03": '"03"'}
    for text, value in wrong.items():
        with pytest.raises(TokenizerError, match=r"came without a tokenizer: type token ids from 0 to 22") as caught:
            opened.trace(text)
        assert value in str(caught.value)


def test_a_tokenizer_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.checkpoints import folders

    folder = folders.gpt2(tmp_path / "gpt2")
    expected = load(folder)
    (folder / "config.json").unlink()
    opened = load(folder, n_heads=4)
    assert torch.equal(opened.trace("The cats").logits, expected.trace("The cats").logits)
    assert opened.model.config.eos_id == expected.model.config.eos_id
    weights = folders.tensors(folder)
    small = {n: t[:9] if n in ("transformer.wte.weight", "lm_head.weight") else t for n, t in weights.items()}
    folders.save_tensors(folder, small)
    ours = load(folder, n_heads=4)
    assert [token.id for token in ours.encode("3 8")] == [3, 8]
    assert ours.model.config.eos_id is None
    notes = [str(note) for note in ours.report.assumptions]
    assert any("the embedding table 9 rows: the tokenizer belongs to another model" in one for one in notes)
    (folder / "vocab.json").unlink()
    assert torch.equal(load(folder, n_heads=4).trace("3 8").logits, ours.trace("3 8").logits)


# --- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sweep
def test_damaged_files(tmp_path: Path) -> None:
    """Bits flipped, ends cut off, names changed: it opens or it is refused, with an error of ours."""
    dice = random.Random(7)
    original = saved({"model": nano_gpt(), "model_args": {"n_head": 4}}, tmp_path / "original.pt").read_bytes()
    path, outcome = tmp_path / "model.pt", {"opened": 0, "refused": 0}
    weights = nano_gpt()
    for number in range(300):
        if number % 3:
            content = bytearray(original)
            for _ in range(dice.choice((1, 2, 8))):
                content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
            path.write_bytes(content[: dice.randrange(len(content))] if number % 9 == 1 else content)
        else:
            changed = dict(weights)
            for name in dice.sample(sorted(weights), dice.choice((1, 2, 5))):
                tensor = changed.pop(name)
                kind = dice.randrange(5)
                if kind == 1:
                    changed[name[: dice.randrange(len(name) + 1)]] = tensor
                elif kind == 2:
                    changed[name] = tensor.reshape(-1)
                elif kind == 3:
                    changed[name.replace("0", "7")] = torch.zeros(dice.choice(((), (0,), (1, 0), (1, 1, 1), (D, D))))
                elif kind == 4:
                    changed[dice.choice(sorted(weights))] = tensor
            saved(changed, path)
        with suppress(VizformerError):
            load(path, **ANSWERS)
            outcome["opened"] += 1
            continue
        outcome["refused"] += 1
    assert min(outcome.values()) > 20, outcome
