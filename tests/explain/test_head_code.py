"""Code for one head without VizFormer: run, it finds the pattern of the trace; what it does not follow is refused."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests import tiny
from tests.bundled import load
from tests.explain.variants import NO_CODE, TARGET, TEXT, VARIANTS
from vizformer.checkpoints import Checkpoint
from vizformer.explain.head_code import NotWrittenError, in_torch
from vizformer.model import Trace

MORE = {
    "window": ("decoder-only", dict(norm_order="pre", sliding_window=3)),
    "window-to-both-sides": ("encoder-only", dict(sliding_window=2)),
    "window-of-one-layer": ("decoder-only", {**tiny.LLAMA, "sliding_window": 2, "sliding_layers": (1,)}),
}


def ids(trace: Trace) -> dict[str, list[int]]:
    return {stack: [token.id for token in tokens] for stack, tokens in trace.tokens.items()}


def run(code: str) -> torch.Tensor:
    exec(code, space := {})
    found: torch.Tensor = space["pattern"]
    return found


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", [*VARIANTS, *MORE])
def test_the_code_of_every_site_finds_the_pattern_of_the_trace(name: str, tmp_path: Path) -> None:
    architecture, options = (VARIANTS | MORE)[name]
    made: Checkpoint = tiny.checkpoint(architecture, **options)
    config = made.model.config
    trace = made.trace(TEXT, target=TARGET) if architecture == "encoder-decoder" else made.trace(TEXT)
    file = tmp_path / "model.safetensors"
    save_file({key: value.contiguous().clone() for key, value in made.model.state_dict().items()}, file)
    if name in NO_CODE:
        with pytest.raises(NotWrittenError, match=NO_CODE[name]):
            in_torch(config, ids(trace), trace.sites[0], 0, str(file))
        return
    (rows,) = made.segments(next(iter(trace.tokens.values()))).tolist() if config.n_segments else ((),)
    for site in trace.sites:
        head = config.n_heads - 1
        code = in_torch(config, ids(trace), site, head, str(file), segments=rows)
        assert "vizformer" not in code.replace(str(file), "")
        tiny.assert_close(run(code), trace[site].pattern(head))


@pytest.mark.parametrize("name", ["zh-en", "stories", "cloze", "induction-by-hand"])
def test_the_code_of_a_bundled_model_runs_in_a_checkout_as_it_stands(name: str) -> None:
    made = load(name)
    text = {"zh-en": "我有一只猫。", "cloze": "the [MASK] sat [SEP] a cat"}.get(name, "a b a b")
    trace = made.trace(text)
    site = trace.sites[-1]
    (rows,) = made.segments(trace.tokens["encoder"]).tolist() if name == "cloze" else ((),)
    assert any(rows) == (name == "cloze")
    code = in_torch(made.model.config, ids(trace), site, 1, f"assets/models/{name}/model.safetensors", segments=rows)
    tiny.assert_close(run(code), trace[site].pattern(1))
    assert max(map(len, code.splitlines())) <= 140
