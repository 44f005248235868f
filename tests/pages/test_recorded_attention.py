"""Attention with code of every kind: sinks, no scores, the last row of logits alone, two stacks; what needs more says so."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.components.test_mount import sent
from tests.pages.conftest import Open
from tests.pages.reading import said
from tests.recorded_code import named
from vizformer.analysis import input_attribution
from vizformer.web.catalogue import named_code
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.lens import inputs

ATTENTION = "pages/explore/attention.py"
HEAD = """from tests.checkpoints.recorded.test_wrap import Letters, words
from tests.recorder.hand_written import GPT, KINDS
from tests.recorder.all_types import VOCAB, made

class Last(GPT):
    def forward(self, ids):
        return super().forward(ids)[:, [-1]], None

def small(model):
    for block in model.h:
        block.attn.wq.weight.data *= 0.1
        block.attn.wq.bias.data *= 0.1
    return model

"""
CODE = {
    "sinks": ('GPT(KINDS["Sinks"]), Letters()', "a cat", ("weights", "scores")),
    "unscored": ('small(GPT(KINDS["ReluAttention"])), Letters()', "a cat", ("weights",)),
    "last": ("Last(), Letters()", "a cat", ("weights", "scores")),
    "bert": ('made("bert"), words(VOCAB)', "w7 w8 w9", ("weights", "scores")),
    "t5": ('made("t5"), words(VOCAB)', "w7 w8 w9", ("weights", "scores")),
}


@pytest.mark.parametrize("name", CODE)
def test_code_of_a_kind_is_drawn_on_attention(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made, text, numbers = CODE[name]
    file = tmp_path / f"code_{name}.py"
    file.write_text(f"{HEAD}def load():\n    return {made}\n", encoding="utf-8")
    with named(monkeypatch, file):
        app = open_app(ATTENTION, model=f"code/code_{name}", text=text)
        assert not app.exception
        assert not app.error, [one.value for one in app.error]
        drawn = sent(app)
        assert len(drawn["key_tokens"]) == (len(text.split()) if text[0] == "w" else len(text))
        assert (drawn.get("scores") is not None) == ("scores" in numbers)
        assert "its row" in said(app)
        loaded = named_code.checkpoint(ModelRef.parse(f"code/code_{name}"))
        if hasattr(loaded.module, "maps"):  # of what is written by hand, which keeps what it multiplied its values by
            loaded.module(loaded.tensor(loaded.encode(text)))
            maps = torch.stack([one[0] for one in loaded.module.maps]).detach().numpy()
            assert np.abs(drawn["weights"].reshape(maps.shape) - maps).max() < 1e-6


def test_what_a_head_takes_from_each_key_stands_below_the_shares_of_heads(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "code_half.py"
    file.write_text(f"{HEAD}def load():\n    return GPT().half(), Letters()\n", encoding="utf-8")
    with named(monkeypatch, file):
        app = open_app("pages/explore/lens.py", model="code/code_half", text="a cat sat")
        assert not app.exception
        assert not app.error, [one.value for one in app.error]  # (in half precision the sums are as near as it allows)
        assert "Most of it comes from" in said(app)
        run = named_code.checkpoint(ModelRef.parse("code/code_half"))
        trace = run.recorded(run.tensor(run.encode("a cat sat")))
        position, token = 8, int(run.trace("a cat sat").logits[8].argmax())
        heads = trace.head_shares(position, token, "mean")
        site, head = max(((s, h) for s in heads for h in range(4)), key=lambda one: abs(heads[one[0]][one[1]]))
        top = trace.key_shares(site, head, position, token, "mean")
        assert all(
            f'title="{key}: {share:+.4f}"'.replace("-", "−") in said(app) for key, share in enumerate(top.shares)
        )


@pytest.mark.parametrize(
    ("made", "text"), [("Last(), Letters()", "a cat sat"), ('made("t5"), words(VOCAB)', "w7 w8 w9")]
)
def test_the_tokens_that_an_answer_depends_on_are_tinted_by_gradients(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, text: str
) -> None:
    monkeypatch.setattr(
        inputs, "folded", lambda *_, **__: nullcontext(True)
    )  # AppTest opens no box that is closed at first
    file = tmp_path / "code_inputs.py"
    file.write_text(f"{HEAD}def load():\n    return {made}\n", encoding="utf-8")
    with named(monkeypatch, file):
        app = open_app("pages/explore/lens.py", model="code/code_inputs", text=text, position=2)
        assert not app.exception
        assert not app.error, [one.value for one in app.error]
        run = named_code.checkpoint(ModelRef.parse("code/code_inputs"))
        trace = run.trace(text)
        found = input_attribution(run, trace, 2, int(trace.logits[2].argmax()))
        assert f"{found.value:.3f}".replace("-", "−") in said(app)
        assert f"{found.baseline:.3f}".replace("-", "−") in said(app)
