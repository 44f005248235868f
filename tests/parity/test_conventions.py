"""What the weights of hand-written models do not hold: exact under the right answers, never wrong without being asked."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests import conventions, tiny
from tests.conventions import CODES, FORKS, KINDS
from tests.strangers import H
from vizformer.checkpoints import Opened, UnansweredError, load, propose_mapping
from vizformer.checkpoints.tensors import memory
from vizformer.errors import CheckpointError
from vizformer.web.tools.model_report import report_words

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


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", KINDS)
def test_the_numbers_are_those_of_the_author(name: str, tmp_path: Path) -> None:
    path, expected = saved(name, tmp_path)
    ours = load(path, **KINDS[name].answers)
    tiny.assert_close(logits_of(ours), expected)
    assert ours.report.answers.items() >= KINDS[name].answers.items()
    again = load(path, **ours.report.answers)  # as a link has them
    tiny.assert_close(logits_of(again), expected)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.sample(23)
def test_without_answers_every_convention_is_asked(name: str, tmp_path: Path) -> None:
    path, __ = saved(name, tmp_path)
    first = {"norm": "rms_norm"} if "without weights" in name else {}  # which the others follow from
    with pytest.raises(UnansweredError) as caught:
        load(path, **first)
    asked = {question.name for question in caught.value.questions if f"{question.name}=..." in str(caught.value)}
    known = caught.value.answers.items()
    wrong = {
        field for field, value in KINDS[name].answers.items() if (field, value) not in known and field not in asked
    }
    assert wrong <= {"bos_id", "eos_id"}  # which change no number of a text that is given


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.open])
@pytest.mark.sample(16)
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


def test_one_row_of_the_segments_is_the_first_and_the_others_follow(tmp_path: Path) -> None:
    path, __ = saved("segment 1", tmp_path)
    table = torch.load(path)["segment_embedding.weight"]
    ours = load(path, **KINDS["segment 1"].answers)
    rows = ours.model.get_parameter("segment_embedding.weight")
    assert torch.equal(rows, table[[1, 2, 0]])
    (fate,) = [tensor for tensor in ours.report.tensors if tensor.name == "segment_embedding.weight"]
    assert (fate.fate, fate.shape) == ("used", (3, 16))


def test_answers_that_make_no_model_are_refused_in_words(tmp_path: Path) -> None:
    path, __ = saved("side by side", tmp_path)
    with pytest.raises(CheckpointError, match="residual='parallel': attention and feed-forward read the same input"):
        load(path, **{**KINDS["side by side"].answers, "norm_order": "post"})


@pytest.mark.parametrize(
    ("habits", "answer", "said"),
    [
        (dict(rows="not_transposed"), dict(head_rows="not_transposed"), "each read a part of the text only"),
        (
            dict(normed="tokens"),
            dict(normed_embeddings="tokens"),
            "normalise the embeddings before positions are added",
        ),
        (dict(softmax="before_mask"), dict(softmax="before_mask"), "masked after the softmax"),
        (dict(softmax="over_queries"), dict(softmax="over_queries"), "run over the queries"),
        (dict(turned="rows"), dict(positions="rope_before_heads"), "turned before they are split into heads"),
        (dict(norm="layer"), dict(qk_norm="otherwise"), "another kind of norm than the rows"),
        (dict(), dict(residual="otherwise"), "multiplied by a number, or only one of both sublayers would add it"),
        (
            dict(norm="none"),
            dict(residual="otherwise"),
            "multiplied by a number, or only one of both sublayers would add it",
        ),
        (dict(), dict(norm_order="otherwise"), "or at different ones for attention and feed-forward"),
        (dict(order="unused"), dict(norm_order="otherwise"), "or at different ones for attention and feed-forward"),
        (dict(), dict(activation="otherwise"), "a function that none of VizFormer's models has"),
        (dict(first_position=2), dict(first_position="otherwise"), "in another way than one by one from a row"),
        (dict(), dict(logit_scale="otherwise"), "divided by another number, or bounded by a soft cap"),
        (dict(waves=True, scaled="sum"), dict(scaled_rows="sum"), "waves, or rows of segments, would be scaled"),
        (dict(segment=1, scaled="sum"), dict(scaled_rows="sum"), "waves, or rows of segments, would be scaled"),
    ],
)
def test_what_no_model_here_computes_is_asked_and_refused(habits: Any, answer: Any, said: str, tmp_path: Path) -> None:
    kind = conventions.written({}, causal=True, **habits)
    torch.save(tiny.randomise(kind.make()).state_dict(), tmp_path / "model.pt")
    ((name, value),) = answer.items()
    with pytest.raises(UnansweredError, match=rf"{name}=\.\.\.") as caught:
        load(tmp_path / "model.pt")
    (question,) = [one for one in caught.value.questions if one.name == name]
    assert value in set(question.choices) - set(question.open)  # a search of a text does not try it
    assert report_words.answer(name, value) != value
    with pytest.raises(CheckpointError, match=said):
        load(tmp_path / "model.pt", **kind.strict | answer)


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        (
            "no norms but of queries and keys, without weights",
            dict(norm="none"),
            "qk_norm=True decides nothing where norm=none",
        ),
        (
            "no norms but the last, without weights",
            dict(norm="none"),
            "final_norm=True decides nothing where norm=none",
        ),
        ("numbers of the heads in turn", dict(n_heads=1), "head_rows=in_turn decides nothing where n_heads=1"),
        ("heads turned", dict(rope_theta=500, positions="none"), "rope_theta=500.* nothing where positions=none"),
        ("fused, by_number", dict(qkv_rows="by_head", head_rows="in_turn"), "numbers lie head by head"),
        ("fused, by_number", dict(qkv_rows="by_head_number", head_rows="split_in_turn"), "numbers lie head by head"),
    ],
)
def test_answers_that_go_together_with_no_model_are_refused(name: str, more: Any, said: str, tmp_path: Path) -> None:
    path, __ = saved(name, tmp_path)
    load(path, **KINDS[name].answers)
    with pytest.raises(CheckpointError, match=said):
        load(path, **{**KINDS[name].answers, **more})


@pytest.mark.parametrize("heads", ["in_turn", "joined_in_turn"])
def test_under_an_order_number_by_number_only_the_joining_is_left(heads: str, tmp_path: Path) -> None:
    path, expected = saved("fused, by_number, joined in turn", tmp_path)
    tiny.assert_close(
        logits_of(load(path, **KINDS["fused, by_number, joined in turn"].strict, head_rows=heads)), expected
    )


def test_no_norm_anywhere_is_one_model_whatever_kind_is_said(tmp_path: Path) -> None:
    path, expected = saved("no norms", tmp_path)
    ours = load(path, **KINDS["no norms"].answers, norm="rms_norm", norm_order="none", norm_eps=1e-3)
    tiny.assert_close(logits_of(ours), expected)
    assert ours.model.config == load(path, **KINDS["no norms"].answers).model.config


def test_a_table_of_segments_that_nothing_adds_is_listed_as_unused(tmp_path: Path) -> None:
    path, __ = saved("no segment", tmp_path)
    ours = load(path, **KINDS["no segment"].answers)
    (fate,) = [tensor for tensor in ours.report.tensors if tensor.name == "segment_embedding.weight"]
    assert (fate.fate, str(fate.note)) == ("unused", "the table of segments, of which no row is added")
    assert ours.model.config.n_segments == 0


def forked(name: str, code: str, folder: Path) -> tuple[Path, Tensor]:
    """The weights of a fork under the names of a known code, and what the fork's forward makes of IDS."""
    model = tiny.randomise(FORKS[name].make()).eval()
    torch.save(conventions.under_names(model.state_dict(), code), folder / "model.pt")
    with torch.no_grad():
        return folder / "model.pt", model(torch.tensor([IDS]))[0]


@pytest.mark.sample(9)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", FORKS)
def test_a_fork_under_the_names_of_a_known_code(name: str, code: str, tmp_path: Path) -> None:
    """The names are taken for that code, which stands beside every picture; where it is another one, all is asked."""
    path, expected = forked(name, code, tmp_path)
    known = load(path, n_heads=4, activation="gelu")
    assert known.report.family == code
    assert known.report.assumed.items() >= {
        *{"known_code": True, "norm_order": "pre", "causal": True, "score_scale": "root_of_d_head"}.items(),
        *{"scaled_embedding": False, "norm_eps": 1e-5, "norm": "layer_norm"}.items(),
    }
    assert not torch.allclose(logits_of(known), expected, atol=1e-4)
    with pytest.raises(UnansweredError) as caught:
        load(path, known_code=False)
    assert FORKS[name].strict.keys() <= {question.name for question in caught.value.questions}
    ours = load(path, **FORKS[name].strict)
    tiny.assert_close(logits_of(ours), expected)
    assert "known_code" in ours.report.answers
    tiny.assert_close(logits_of(load(path, **ours.report.answers)), expected)


def test_what_is_no_known_code_is_not_asked_whether_it_is(tmp_path: Path) -> None:
    path, __ = saved("squared ReLU", tmp_path)
    with pytest.raises(CheckpointError, match='"known_code" is not open here'):
        load(path, **KINDS["squared ReLU"].answers, known_code=True)


def test_of_one_head_no_two_equal_scales_are_asked_for(tmp_path: Path) -> None:
    path, __ = saved("heads, not scaled", tmp_path)
    weights = {name: tensor for name, tensor in torch.load(path).items() if not re.search(r"heads\.[1-3]", name)}
    widened = {name: t.repeat(H, 1) if "heads.0" in name else t for name, t in weights.items()}
    torch.save(widened, path)
    with pytest.raises(UnansweredError) as caught:
        load(path)
    (scale,) = [question for question in caught.value.questions if question.name == "score_scale"]
    assert scale.choices == ("root_of_d_head", "d_head", "nothing")


def test_one_layer_may_be_applied_again_and_again(tmp_path: Path) -> None:
    name, path = "apart, another epsilon", tmp_path / "one.pt"
    whole = conventions.made(name).state_dict()
    torch.save({key.replace("layers.0.", "layer."): t for key, t in whole.items() if "layers.1." not in key}, path)
    answers = KINDS[name].strict
    with pytest.raises(UnansweredError, match=r"layer_applied=\.\.\."):
        load(path)
    assert load(path, **answers).model.config.n_encoder_layers == 1
    with pytest.raises(CheckpointError, match="a list of as many layers"):
        load(path, **answers, layer_applied="repeatedly")


def test_embeddings_with_a_norm_are_not_normalised_twice(tmp_path: Path) -> None:
    path, __ = saved("translator, logits by the root of the width", tmp_path)
    answers = {**KINDS["translator, logits by the root of the width"].answers, "norm_order": "normed_stream"}
    with pytest.raises(CheckpointError, match=r"would normalise the embeddings twice, by .*layer_norm"):
        load(path, **answers)


def test_a_norm_of_the_decoders_embeddings_alone_is_refused(tmp_path: Path) -> None:
    path, __ = saved("translator, a norm after the decoder alone", tmp_path)
    answers = {**KINDS["translator, a norm after the decoder alone"].answers, "norm_place": "first"}
    with pytest.raises(CheckpointError, match="one after the embeddings of every stack"):
        load(path, **answers)


def test_the_report_says_that_norms_are_shown_after_the_sum(tmp_path: Path) -> None:
    path, __ = saved("the normalised row is added to", tmp_path)
    ours = load(path, **KINDS["the normalised row is added to"].answers)
    assert any("each norm is therefore shown after the sum before it" in str(said) for said in ours.report.assumptions)
    assert (ours.model.config.norm_order, ours.model.config.last_norm) == ("post", False)


def test_a_list_without_layer_0_has_lost_it(tmp_path: Path) -> None:
    path, __ = saved("apart, another epsilon", tmp_path)
    weights = torch.load(path)
    moved = {re.sub(r"layers\.(\d)", lambda n: f"layers.{int(n[1]) + 1}", name): t for name, t in weights.items()}
    torch.save(moved, path)
    with pytest.raises(CheckpointError, match="layers in an arrangement that does not open") as caught:
        load(path, **KINDS["apart, another epsilon"].answers)
    assert not isinstance(caught.value, UnansweredError)


def test_which_of_two_is_the_gate_has_no_role_in_a_proposal(tmp_path: Path) -> None:
    path, __ = saved("the first is the gate", tmp_path)
    roles = propose_mapping(path)["roles"]
    assert "layers.#.feedforward.W_out.weight" in roles
    assert not {role for role in roles if "W_gate" in role or "W_in" in role}


def test_a_translator_whose_decoder_sees_the_future_is_refused(tmp_path: Path) -> None:
    path, __ = saved("translator, logits by the root of the width", tmp_path)
    answers = KINDS["translator, logits by the root of the width"].answers
    with pytest.raises(CheckpointError, match="sees what comes after a position, as no mask hides it"):
        load(path, **answers, causal=False)
    assert load(path, **answers, causal=True).report.answers["causal"] is True


def test_a_bias_on_scaled_embeddings_may_come_before_or_after(tmp_path: Path) -> None:
    path, __ = saved("narrow embeddings", tmp_path)
    answers = KINDS["narrow embeddings"].answers
    with pytest.raises(
        CheckpointError, match=r"input_projection\.bias. may be added .* before or after they are scaled"
    ):
        load(path, **{**answers, "scaled_embedding": True})
    weights = torch.load(path)
    del weights["input_projection.bias"]
    torch.save(weights, path)
    assert load(path, **{**answers, "scaled_embedding": True}).model.config.scaled_embedding
    weights["head_projection.weight"] = torch.zeros(6, 16)  # of narrow rows, with which logits may be made
    torch.save(weights, path)
    with pytest.raises(
        CheckpointError, match=r"input_projection\.weight. .* is a linear layer that makes rows 16 wide"
    ):
        load(path, **answers)


def test_a_table_that_is_made_of_smaller_tensors_needs_its_memory(tmp_path: Path) -> None:
    path, __ = saved("narrow embeddings", tmp_path)
    answers, rows = KINDS["narrow embeddings"].answers, 10_000
    before = memory.need(load(path, **answers).report, torch.float32)
    weights = torch.load(path)
    weights["token_embedding.weight"] = torch.zeros(rows, 6)
    weights["output_projection.weight"], weights["output_projection.bias"] = torch.zeros(rows, 16), torch.zeros(rows)
    torch.save(weights, path)
    ours = load(path, **answers)
    needed = memory.need(ours.report, torch.float32)
    more = needed.copied + needed.mapped - before.copied - before.mapped
    assert more >= 4 * (rows - 23) * (16 + 16 + 1)  # embeddings, as wide as the layers, the head and its bias
    assert ours.model.embedding.weight.shape == (rows, 16)
