"""What somebody with a notebook does: counts from the end, gives a word where an id belongs, looks at what came out."""

import dataclasses
import io
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vizformer as vf
from tests import tiny
from tests.checkpoints.test_state_dict import nano_gpt
from vizformer.analysis import head_outputs, masks
from vizformer.analysis.causes import ablation
from vizformer.analysis.one_forward import followed_token, predictions
from vizformer.analysis.vectors import contextual
from vizformer.checkpoints import Checkpoint, save
from vizformer.checkpoints.export import Layout
from vizformer.errors import TraceError
from vizformer.explain import attention_without_softmax, block_rows, layer, softmax_in_blocks
from vizformer.figures import files
from vizformer.model import Trace

ROOT = Path(__file__).resolve().parents[1]
TEXT = "The cats are here"
HEAD = ("decoder.0.self", 1)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return tiny.checkpoint("decoder-only")


@pytest.fixture(scope="module")
def trace(checkpoint: Checkpoint) -> Trace:
    return checkpoint.trace(TEXT)


def replaced(c: Checkpoint, t: Trace, position: int) -> object:
    n = len(t.tokens["decoder"])
    blocked = np.triu(np.ones((n, n), bool), 1)
    return masks.leak_of(c, t, "decoder", position, 5, blocked).stream


AT: dict[str, Callable[[Checkpoint, Trace, int], object]] = {
    "logit_attribution": lambda c, t, at: vf.analysis.logit_attribution(c, t, at, 5),
    "input_attribution": lambda c, t, at: vf.analysis.input_attribution(c, t, at, 5),
    "logit_lens": lambda c, t, at: vf.analysis.logit_lens(c, t, [at]),
    "next_tokens": lambda c, t, at: vf.analysis.next_tokens(c, t, at),
    "head_look_up": lambda c, t, at: vf.analysis.head_look_up(t, *HEAD, at),
    "pair_terms, query": lambda c, t, at: vf.analysis.pair_terms(t, *HEAD, at, 0),
    "pair_terms, key": lambda c, t, at: vf.analysis.pair_terms(t, *HEAD, len(t.logits) - 1, at),
    "two_answers": lambda c, t, at: vf.analysis.two_answers(vf.analysis.two_runs(c, t, c, t), at),
    "prompt_pair": lambda c, t, at: (
        vf.analysis.prompt_pair(c, TEXT, "The dogs are here", row=at, answer=5, other=6).row
    ),
    "contributions": lambda c, t, at: head_outputs.contributions(c, t, HEAD[0], at),
    "key_contributions": lambda c, t, at: head_outputs.key_contributions(c, t, *HEAD, at),
    "sweep": lambda c, t, at: ablation.sweep(c, t, at, 5),
    "token_sweep": lambda c, t, at: ablation.token_sweep(c, t, "decoder", at, 5, "unseen"),
    "follow_token": lambda c, t, at: followed_token.follow_token(c, t, at).candidates,
    "guess": lambda c, t, at: predictions.guess(t, at, 5),
    "replacements": lambda c, t, at: masks.replacements(c, t, "decoder", at),
    "leak_of": replaced,
    "contexts": lambda c, t, at: contextual.contexts(c, t, t, at, at).same,
    "unit_rows": lambda c, t, at: contextual.unit_rows(t, at),
    "block_stream": lambda c, t, at: block_rows.block_stream(c, t, "decoder", 0, at),
    "attention_steps": lambda c, t, at: [step.result for step in vf.explain.attention_steps(c, t, *HEAD, at)],
    "output_steps": lambda c, t, at: [step.result for step in layer.output_steps(c, t, at)],
    "candidates": lambda c, t, at: layer.candidates(c, t, at),
    "online_softmax": lambda c, t, at: softmax_in_blocks.online_softmax(t[HEAD[0]], 1, at, 2).z,
    "linear_attention": lambda c, t, at: attention_without_softmax.state(t[HEAD[0]], 1, at),
}


def same(a: Any, b: Any) -> bool:
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, one.name), getattr(b, one.name)) for one in dataclasses.fields(a))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray | torch.Tensor | float):
        return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))
    return bool(a == b)


@pytest.mark.parametrize("name", AT)
@pytest.mark.sample(15)
def test_a_position_counts_from_the_end_where_it_is_negative(checkpoint: Checkpoint, trace: Trace, name: str) -> None:
    n = len(trace.logits)
    for back, at in ((-1, n - 1), (-2, n - 2)):
        assert same(AT[name](checkpoint, trace, back), AT[name](checkpoint, trace, at))
    for wrong in (n, -n - 1):
        with pytest.raises(TraceError, match=f"There is no position {wrong}: choose 0 to"):
            AT[name](checkpoint, trace, wrong)


def test_a_word_hidden_in_an_encoder_may_be_counted_from_the_end() -> None:
    cloze = vf.load("cloze")
    tokens = cloze.encode("The cat sat.")
    assert predictions.hide(cloze, tokens, [-2]).tokens == predictions.hide(cloze, tokens, [len(tokens) - 2]).tokens
    hidden = predictions.hide(cloze, tokens, [-2])
    np.testing.assert_array_equal(predictions.looks_at(hidden, -1), predictions.looks_at(hidden, len(tokens) - 1))


WITH_TOKEN: list[Callable[[Checkpoint, Trace, Any], object]] = [
    lambda c, t, token: vf.analysis.logit_attribution(c, t, -1, token),
    lambda c, t, token: vf.analysis.logit_attribution(c, t, -1, 5, against=token),
    lambda c, t, token: vf.analysis.input_attribution(c, t, -1, token),
    lambda c, t, token: vf.analysis.logit_lens(c, t, [-1], targets=[token]),
    lambda c, t, token: vf.analysis.prompt_pair(c, TEXT, "The dogs are here", answer=token),
    lambda c, t, token: ablation.sweep(c, t, -1, token),
    lambda c, t, token: ablation.token_sweep(c, t, "decoder", -1, token, "unseen"),
    lambda c, t, token: predictions.guess(t, -1, token),
]


def wrong_kinds() -> None:
    """What is no number, or no text, is answered in words; without the types that the tests check before any call."""
    checkpoint = tiny.checkpoint("decoder-only")
    trace = checkpoint.trace(TEXT)
    for name, call in AT.items():
        for wrong in ("the", 1.0, [0]):
            with pytest.raises(TraceError, match=r"There is no position .*: choose 0 to"):
                call(checkpoint, trace, wrong)  # type: ignore[arg-type]
        last = len(trace.logits) - 1
        assert same(call(checkpoint, trace, np.int64(last)), call(checkpoint, trace, last)), name
    for with_token in WITH_TOKEN:
        for token in ("boy", 10**6, -1, 1.5):
            with pytest.raises(TraceError, match=r"There is no token .*: give its id, 0 to \d+\. checkpoint\.encode"):
                with_token(checkpoint, trace, token)
    for text in ([3, 4], 3, torch.tensor([3])):
        for read in (checkpoint.trace, checkpoint.encode, checkpoint.generate):
            with pytest.raises(TraceError, match=r"A text is needed, not \w+\. Token ids .* ids="):
                read(text)  # type: ignore[operator]
    for ids in (["boy"], [1.5], 7, "boy"):
        with pytest.raises(TraceError, match="Token ids are whole numbers in a list"):
            checkpoint.trace(ids=ids)  # type: ignore[arg-type]
    for ids in (torch.tensor([3, 4]), np.array([3, 4])):
        assert [token.id for token in checkpoint.trace(ids=ids).tokens["decoder"]] == [3, 4]  # type: ignore[arg-type]


@pytest.mark.sweep
def test_what_is_no_number_or_no_text_is_answered_in_words() -> None:
    script = "from tests import test_library; test_library.wrong_kinds()"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_pair_of_prompts_may_be_token_ids(checkpoint: Checkpoint) -> None:
    clean, corrupted = "The cats are here", "The dogs are here"
    by_text = vf.analysis.prompt_pair(checkpoint, clean, corrupted)
    ids = [[token.id for token in checkpoint.encode(text)] for text in (clean, corrupted)]
    by_ids = vf.analysis.prompt_pair(checkpoint, *ids)
    assert (by_ids.row, by_ids.answer, by_ids.other) == (by_text.row, by_text.answer, by_text.other)
    torch.testing.assert_close(by_ids.corrupted.logits, by_text.corrupted.logits, rtol=0, atol=0)
    both = tiny.checkpoint()
    read = [token.id for token in both.encode_target("I have")]
    asked = dict(row=-1, answer=5, other=6)
    one = vf.analysis.prompt_pair(both, clean, corrupted, target="I have", **asked)
    other = vf.analysis.prompt_pair(
        both, *[[token.id for token in both.encode(text)] for text in (clean, corrupted)], target=read, **asked
    )
    torch.testing.assert_close(one.clean.logits, other.clean.logits, rtol=0, atol=0)
    with pytest.raises(TraceError, match="what the decoder has read"):
        vf.analysis.prompt_pair(both, clean, corrupted, target=[])


def test_what_a_notebook_prints_of_a_checkpoint_is_one_line() -> None:
    for name, said in (("zh-en", "encoder-decoder, 3 + 3 layers"), ("stories", "decoder-only, 5 layers")):
        shown = repr(vf.load(name))
        assert shown.startswith(f"<Opened {name}: {said}")
        assert len(shown) < 200
    shown = vf.load("zh-en").trace("我有一只猫。" * 9)
    for one in (shown, shown["decoder.2.cross"]):
        assert len(repr(one)) < 100
        assert "\n" not in repr(one)


def test_what_a_notebook_prints_of_a_report_is_short(tmp_path: Path) -> None:
    shown = repr(vf.load("zh-en").report)
    assert shown.startswith("<Report zh-en: ")
    assert "7,577,600 parameters; tensors: 127 used" in shown
    torch.save(nano_gpt(), tmp_path / "open.pt")
    bare = repr(vf.load(tmp_path / "open.pt", n_heads=4, activation="gelu").report)
    assert "bare weights" in bare
    assert "assumes n_heads = 4, activation = gelu" in bare
    assert len(bare) < 400 + len(shown)


@pytest.mark.parametrize("layout", ["vizformer", "hugging-face"])
def test_what_is_saved_has_the_rights_of_any_new_file(tmp_path: Path, layout: Layout) -> None:
    before = os.umask(0o026)
    try:
        save(tiny.checkpoint("decoder-only", **tiny.LLAMA), tmp_path, layout=layout)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o640}


def test_an_archive_of_a_figure_says_its_tokens_model_and_place(trace: Trace) -> None:
    names = [token.text for token in trace.tokens["decoder"]]
    figure = vf.figures.attention_heatmap(trace[HEAD[0]].pattern(1).numpy(), names, names)
    about = {"model": "tiny", "place": "decoder.0.self, head 1"}
    with np.load(io.BytesIO(files.as_file(figure, "npz", about=about)), allow_pickle=False) as read:
        assert read["0_x_names"].tolist() == read["0_y_names"].tolist() == names
        assert {name: str(read[name]) for name in about} == about
