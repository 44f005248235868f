"""DeBERTa v1, v2 and v3 against `transformers`, in all their variants, and what of them is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, same_numbers, theirs
from tests.parity.test_encoder_families import KINDS, written
from vizformer.checkpoints import load, save
from vizformer.errors import CheckpointError
from vizformer.explain import attention_steps, layer_steps
from vizformer.model.disentangled_attention import relative_rows

LONG = " ".join(folders.TEXTS * 3)
V1, V2 = "deberta", "deberta-v2"
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((kind, dict(pos_att_type=terms)) for kind in (V1, V2) for terms in (["c2p"], ["p2c"], [], None, "C2P | p2c")),
    *((kind, dict(relative_attention=False)) for kind in (V1, V2)),
    *((kind, dict(relative_attention=False, pos_att_type=None)) for kind in (V1, V2)),
    *((kind, dict(position_biased_input=on)) for kind in (V1, V2) for on in (True, False)),
    *((kind, dict(max_relative_positions=reach)) for kind in (V1, V2) for reach in (-1, 0, 9)),
    *((kind, dict(type_vocab_size=2, embedding_size=6)) for kind in (V1, V2)),
    *((kind, dict(embedding_size=6, tie_word_embeddings=False)) for kind in (V1, V2)),
    *((kind, dict(legacy=False)) for kind in (V1, V2)),
    *((kind, dict(legacy=False, tie_word_embeddings=False)) for kind in (V1, V2)),
    *((kind, dict(hidden_act="silu", layer_norm_eps=1e-2)) for kind in (V1, V2)),
    (V1, dict(pos_att_type=["c2p", "p2c", "p2p"])),  # one more entry divides the scores, and adds nothing to them
    (V1, dict(pos_att_type="none")),
    (V2, dict(pos_att_type=["c2p", "p2p"])),
    (V2, dict(share_att_key=False)),
    (V2, dict(share_att_key=False, pos_att_type=["p2c"], norm_rel_ebd="none")),
    (V2, dict(position_buckets=-1)),
    (V2, dict(position_buckets=0, max_relative_positions=5, norm_rel_ebd="none")),
    (V2, dict(position_buckets=7, max_relative_positions=9)),
    (V2, dict(position_buckets=2, max_relative_positions=64, norm_rel_ebd=" layer_norm|other")),
    (V2, dict(relative_attention=False, position_biased_input=True, norm_rel_ebd="layer_norm")),
    (V2, dict(attention_head_size=4, conv_kernel_size=0, conv_act="gelu", conv_groups=1)),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("kind", "changes"), VARIANTS, ids=str)
def test_variants(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    name = f"{KINDS[kind][0]}ForMaskedLM"
    folder = written(kind, tmp_path, **changes)
    opened = opened_and_same(folder, name)
    text = LONG[:150]  # beyond the reach of the tables
    assert 20 < len(opened.encode(text)) <= 64
    same_numbers(opened, theirs(folder, name), text)


@pytest.mark.parametrize("kind", [V1, V2])
def test_a_padded_pair(kind: str, tmp_path: Path) -> None:
    folder = written(kind, tmp_path, type_vocab_size=2)
    opened, other = load(folder), theirs(folder, f"{KINDS[kind][0]}ForMaskedLM")
    first, second = ([token.id for token in opened.encode(text)] for text in (folders.TEXTS[0], folders.TEXTS[2]))
    longest = max(len(first), len(second))
    assert len(first) != len(second)
    ids = torch.tensor([one + [0] * (longest - len(one)) for one in (first, second)])
    padding = torch.tensor([[place >= len(one) for place in range(longest)] for one in (first, second)])
    segments = torch.arange(longest)[None].repeat(2, 1) % 2
    with torch.no_grad():
        found = opened.model(ids, padding=padding, segments=segments)
        expected = other(ids, attention_mask=(~padding).long(), token_type_ids=segments).logits
    tiny.assert_close(found[~padding], expected[~padding])


@pytest.mark.parametrize("model", ["ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"])
@pytest.mark.parametrize("kind", [V1, V2])
def test_heads_of_other_tasks_are_left_out(kind: str, model: str, tmp_path: Path) -> None:
    folder = written(kind, tmp_path, model=model)
    opened = load(folder)
    assert not opened.report.has_head
    assert {tensor.fate for tensor in opened.report.tensors} == {"used", "unused"}
    same_numbers(opened, theirs(folder, f"{KINDS[kind][0]}Model"))


@pytest.mark.parametrize("kind", [V1, V2])
def test_the_head_of_the_published_files_is_read_though_they_do_not_say_so(kind: str, tmp_path: Path) -> None:
    """They hold lm_predictions and no word of legacy; `transformers` would begin a head of its own."""
    folder = written(kind, tmp_path, legacy=False)
    expected = theirs(folder, f"{KINDS[kind][0]}ForMaskedLM")
    weights = folders.tensors(folder)
    weights["mask_predictions.dense.weight"] = torch.zeros(16, 16)
    folders.save_tensors(folder, weights)
    opened = load(folders.change(folder, legacy=...))
    same_numbers(opened, expected)
    assert opened.report.has_head
    assert any("authors' own code, lm_predictions" in str(note) for note in opened.report.assumptions)
    (other,) = opened.report.with_fate("unused")
    assert "tells replaced tokens" in str(other.note)


def test_of_two_heads_the_one_that_transformers_reads(tmp_path: Path) -> None:
    folder = written(V2, tmp_path)
    weights = folders.tensors(folder)
    head = "lm_predictions.lm_head"
    weights |= {f"{head}.dense.weight": torch.ones(16, 16), f"{head}.bias": torch.ones(folders.vocabulary(folder))}
    folders.save_tensors(folder, weights)
    opened = load(folder)
    same_numbers(opened, theirs(folder, "DebertaV2ForMaskedLM"))
    assert {"a second head, beside the one that is read"} == {str(t.note) for t in opened.report.with_fate("unused")}
    with pytest.raises(CheckpointError, match="legacy=false: the file has a head of either kind"):
        load(folders.change(folder, legacy=False))


@pytest.mark.parametrize("kind", [V1, V2])
def test_every_step_holds_and_our_own_file_gives_the_same(kind: str, tmp_path: Path) -> None:
    opened = load(written(kind, tmp_path / "theirs"))
    save(opened, tmp_path / "ours", torch.float32)
    again = load(tmp_path / "ours")
    trace = again.trace(LONG[:150])
    assert again.model.config == opened.model.config
    assert all(
        torch.equal(tensor, opened.model.state_dict()[name]) for name, tensor in again.model.state_dict().items()
    )
    # numbers that lie elsewhere in memory may be added up in another order
    tiny.assert_close(trace.logits, opened.trace(LONG[:150]).logits, 1e-6)
    for query in (0, 11, len(trace.logits) - 1):
        for step in attention_steps(again, trace, "encoder.1.self", 2, query):
            assert step.proof.holds, step.key
    assert all(step.proof.holds for step in layer_steps(again, trace, "encoder.2"))


@pytest.mark.parametrize(
    ("buckets", "furthest"), [(256, 512), (8, 20), (7, 9), (2, 64), (64, 1000), (128, 300), (-1, 30)]
)
def test_rows_of_distances(buckets: int, furthest: int) -> None:
    from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position

    n, span = furthest + 9, buckets if buckets > 0 else furthest
    x = torch.zeros(1, n, 1)
    expected = (build_relative_position(x, x, buckets, furthest)[0] + span).clamp(0, 2 * span - 1)
    place = torch.arange(n)
    found = relative_rows(place[None] - place[:, None], span, furthest if buckets > 0 else None)
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        (V2, dict(conv_kernel_size=3), "conv_kernel_size=3: a convolution after the first layer"),
        (V2, dict(attention_head_size=8), "attention_head_size=8: supported is null / 4"),
        (V2, dict(share_att_key=1.5), "share_att_key=1.5: it must be true or false"),
        (V2, dict(position_buckets=2.5), "position_buckets=2.5: it must be a whole number"),
        (
            V2,
            dict(position_buckets=40),
            "max_relative_positions=20: it must be above half of position_buckets plus 1, 21",
        ),
        (V2, dict(norm_rel_ebd="none"), r"norm_rel_ebd=.none.: the file has tensors encoder.LayerNorm.\*"),
        (
            V2,
            dict(position_buckets=2**30, max_relative_positions=2**31 - 1),
            "disentangled_span=1073741824: must be from 2 to 1048576",
        ),
        (V2, dict(norm_rel_ebd=3), "norm_rel_ebd=3: it must be a text"),
        (V1, dict(talking_head=True), "talking_head=true: supported is null / false"),
        *(
            (kind, changes, said)
            for kind in (V1, V2)
            for changes, said in (
                (dict(max_relative_positions="far"), 'max_relative_positions="far": it must be a whole number'),
                (dict(pos_att_type=7), "pos_att_type=7: it must be a list of c2p and p2c"),
                (dict(relative_attention="yes"), 'relative_attention="yes": it must be true or false'),
                (dict(relative_attention=False), r"relative_attention=false: the file has tensors encoder.rel_embed"),
                (dict(is_decoder=True), "is_decoder=true: supported is null / false"),
                (dict(type_vocab_size=-1), "type_vocab_size=-1: it must be a whole number"),
                (dict(embedding_size=0), "embedding_size=0: it must be a whole number"),
            )
        ),
    ],
    ids=str,
)
def test_what_is_not_followed_is_refused_by_name(kind: str, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = folders.change(written(kind, tmp_path), **changes)
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_the_later_head_needs_embeddings_as_wide_as_the_layers(tmp_path: Path) -> None:
    folder = folders.change(written(V2, tmp_path, legacy=False), embedding_size=6)
    with pytest.raises(CheckpointError, match="embedding_size=6: this head compares the last row"):
        load(folder)
