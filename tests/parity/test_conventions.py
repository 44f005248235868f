"""What weights under the names of a layout do not hold: exact under the right answers, never wrong without being asked."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests import conventions, tiny
from tests.conventions import KINDS
from vizformer.checkpoints import Opened, UnansweredError, load
from vizformer.errors import CheckpointError
from vizformer.web.pages.model_report import report_words

IDS, TARGET = [3, 7, 7, 1, 22, 0, 9], [1, 5, 4]


def saved(name: str, folder: Path) -> tuple[Path, Tensor]:
    """The weights as a file, and what the author's forward makes of IDS."""
    model, ids = conventions.made(name), torch.tensor([IDS])
    torch.save(model.state_dict(), folder / "model.pt")
    with torch.no_grad():
        logits = model(ids, torch.tensor([TARGET])) if name.startswith("translator") else model(ids)
    return folder / "model.pt", logits[0]


def logits_of(ours: Opened) -> Tensor:
    both = dict(target_ids=TARGET) if ours.model.config.architecture == "encoder-decoder" else {}
    return ours.trace(ids=IDS, **both).logits


@pytest.mark.parametrize("name", KINDS)
def test_the_numbers_are_those_of_the_author(name: str, tmp_path: Path) -> None:
    path, expected = saved(name, tmp_path)
    ours = load(path, **KINDS[name].answers)
    tiny.assert_close(logits_of(ours), expected)
    assert ours.report.answers.items() >= KINDS[name].answers.items()
    again = load(path, **ours.report.answers)  # as a link has them
    tiny.assert_close(logits_of(again), expected)


@pytest.mark.parametrize("name", KINDS)
def test_without_answers_every_convention_is_asked(name: str, tmp_path: Path) -> None:
    path, __ = saved(name, tmp_path)
    with pytest.raises(UnansweredError) as caught:
        load(path)
    asked = {question.name for question in caught.value.questions if f"{question.name}=..." in str(caught.value)}
    known = caught.value.answers.items()
    wrong = {
        field for field, value in KINDS[name].answers.items() if (field, value) not in known and field not in asked
    }
    assert wrong <= {"bos_id", "eos_id"}  # which change no number of a text that is given


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.open])
def test_what_was_not_answered_is_open_in_the_report(name: str, tmp_path: Path) -> None:
    """As with a link from before it was asked: the usual answer, which is another one here, and the report says so."""
    path, expected = saved(name, tmp_path)
    strict = KINDS[name].strict
    ours = load(path, **strict)
    usual: dict[str, Any] = {question.name: question.usual for question in ours.report.open_questions}
    other = {field for field, value in KINDS[name].open.items() if usual.get(field) != value}
    assert other - {"bos_id", "eos_id"} <= usual.keys()
    # a file without a head is shown with the logits of its embeddings, whether they are tied or not
    same = not other - {"bos_id", "eos_id", "tied"}
    assert same or not torch.allclose(logits_of(ours), expected, atol=1e-7)


def test_a_config_beside_the_weights_says_that_there_are_no_norms(tmp_path: Path) -> None:
    path, expected = saved("TransformerLens without norms", tmp_path)
    said = dict(act_fn="gelu_new", normalization_type=None, attention_dir="causal")
    torch.save({"state_dict": torch.load(path), "cfg": said}, path)
    ours = load(path)
    tiny.assert_close(logits_of(ours), expected)
    assert ours.report.taken["norm"] == "beside"
    assert ours.model.config.norm_order == "none"


def test_folded_norms_are_told_by_centred_embeddings(tmp_path: Path) -> None:
    path, __ = saved("TransformerLens without norms", tmp_path)
    weights = torch.load(path)
    for centred, usual in ((False, "none"), (True, "layer_norm")):
        table = weights["embed.W_E"]
        torch.save({**weights, "embed.W_E": table - table.mean(1, keepdim=True) if centred else table}, path)
        with pytest.raises(UnansweredError) as caught:
            load(path)
        (norm,) = [question for question in caught.value.questions if question.name == "norm"]
        assert (norm.usual, norm.choices) == (usual, ("none", "layer_norm", "rms_norm"))


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        (
            "PyTorch's, over the batch",
            dict(activation="otherwise"),
            "an activation function that none of VizFormer's models has",
        ),
        (
            "PyTorch's, logits by the embeddings, positions from 1 on",
            dict(first_position="otherwise"),
            "in another way than one by one from a row",
        ),
        (
            "PyTorch's, logits by the root of the width",
            dict(logit_scale="otherwise"),
            "divided by another number, or bounded by a soft cap",
        ),
        (
            "nanoGPT, RMS norms",
            dict(known_code=False),
            "a file of weights does not say what a changed forward computes",
        ),
        ("translator, PyTorch's", dict(causal=False), "without a causal mask each position of the decoder"),
    ],
)
def test_what_no_model_here_computes_is_refused_in_words(name: str, answer: Any, said: str, tmp_path: Path) -> None:
    path, __ = saved(name, tmp_path)
    ((field, value),) = answer.items()
    ours = load(path, **KINDS[name].answers)
    (question,) = [one for one in ours.report.questions if one.name == field]
    assert value in set(question.choices) - set(question.open)
    assert report_words.answer(field, value) != value
    with pytest.raises(CheckpointError, match=said):
        load(path, **KINDS[name].answers | answer)


@pytest.mark.parametrize("without", ["encoder", "decoder"])
def test_a_last_norm_in_one_of_two_stacks_is_refused_in_words(without: str, tmp_path: Path) -> None:
    torch.save(conventions.TorchOneNorm(without).state_dict(), tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=r"model\.pt has a final norm in only one of its two stacks.*Record"):
        load(tmp_path / "model.pt", **KINDS["translator, PyTorch's"].answers)


def test_what_a_known_code_fixes_is_said_beside_every_picture(tmp_path: Path) -> None:
    path, __ = saved("nanoGPT, RMS norms", tmp_path)
    assumed = load(path, **KINDS["nanoGPT, RMS norms"].answers).report.assumed
    fixed = dict(known_code=True, norm_order="pre", causal=True, score_scale="root_of_d_head", scaled_embedding=False)
    assert assumed.items() >= {**fixed, "norm": "rms_norm"}.items()
