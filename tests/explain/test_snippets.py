"""The code under a step is plain PyTorch, and runs as it stands on the page."""

import gc
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.explain import attention_steps, layer_steps, light, output_steps, snippet, standalone, toy
from vizformer.explain.snippets import WRITTEN_OUT

OURS = re.compile(r"\b(trace|checkpoint|model|record|attention|vizformer|vf)\b")


def pasted(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with torch.inference_mode():
        exec(text, names)
    return names


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_every_step_of_the_toy_gives_its_result_when_it_is_pasted(stack: str) -> None:
    run = toy()
    steps = layer_steps(run.checkpoint, run.trace, f"{stack}.0")
    for index, step in enumerate(steps):
        found = snippet(steps, index)
        assert found.exact, step.key  # all of its numbers are written out
        result = pasted(found.text("a comment"))[step.variable].double().numpy()
        np.testing.assert_allclose(result, step.result, rtol=1e-4, atol=1e-4, err_msg=step.key)


def chains(name: str) -> list[list[Any]]:
    checkpoint = load(name)
    trace = checkpoint.trace("我有一只猫。")
    stack = "encoder" if checkpoint.model.decoder is None else "decoder"
    return [
        *(attention_steps(checkpoint, trace, site, 1, 2) for site in {trace.sites[0], trace.sites[-1]}),
        layer_steps(checkpoint, trace, f"{stack}.0"),
        output_steps(checkpoint, trace, 1),
    ]


@pytest.mark.parametrize("name", ["zh-en", "stories", "cloze"])
def test_snippets_of_the_bundled_models_run_and_name_nothing_of_ours(name: str) -> None:
    exact = 0
    for steps in chains(name):
        for index, step in enumerate(steps):
            found = snippet(steps, index)
            text = found.text("what stands in")
            assert not OURS.search(text), text
            assert ("# what stands in" in text) == (not found.exact)
            result = np.atleast_1d(pasted(text)[step.variable].double().numpy())
            assert result.shape == step.result.shape, f"{step.key}: {text}"
            if found.exact:
                exact += 1
                np.testing.assert_allclose(result, step.result, rtol=1e-3, atol=1e-3, err_msg=step.key)
    assert exact > 10  # weights, masks and sums of a short sentence are written out


def test_up_to_the_limit_numbers_are_written_out() -> None:
    most = np.arange(WRITTEN_OUT, dtype=float)
    assert standalone("y = x + 1", {"x": most}).exact
    assert pasted(standalone("y = x + 1", {"x": most}).text())["y"].tolist() == (most + 1).tolist()
    assert not standalone("y = x + 1", {"x": np.append(most, 0.5)}).exact


def test_long_booleans_are_stood_in_for_by_booleans() -> None:
    given = {"scores": np.zeros((2, 100)), "hidden": np.arange(100) > 80}
    found = standalone("weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)", given)
    assert not found.exact
    assert pasted(found.text())["weights"].shape == (2, 100)
    assert (
        standalone("x = ~hidden", {"hidden": np.array([True, False])}).given == "hidden = torch.tensor([True, False])"
    )


def test_the_turning_of_rotary_positions_is_in_the_code() -> None:
    checkpoint = load("stories")
    steps = attention_steps(checkpoint, checkpoint.trace("I have a cat."), "decoder.0.self", 0, 3)
    index = next(i for i, step in enumerate(steps) if step.key == "q_turned")
    text = snippet(steps, index).text()
    assert "phi = 3 * 10000.0 ** (-2 * m / 32)" in text
    assert "first * cos - second * sin" in text
    result = pasted(text)["q_turned"].numpy()  # its 32 numbers are written out
    np.testing.assert_allclose(result, steps[index].result, rtol=1e-4, atol=1e-4)


def test_numbers_set_by_hand_are_in_the_code_too() -> None:
    from vizformer.model.edit import Cell, Edit

    checkpoint = tiny.checkpoint("encoder-only")
    trace = checkpoint.trace(ids=[1, 5, 6, 2], edit=Edit((Cell("encoder.0.self.q", (0, 1, 0), 30.0),)))
    steps = attention_steps(checkpoint, trace, "encoder.0.self", 0, 1)
    text = snippet(steps, 1).text()
    assert "q = q_by_hand" in text
    np.testing.assert_allclose(pasted(text)["q"].numpy(), steps[1].result, rtol=1e-4, atol=1e-4)


def test_names_of_python_itself_are_written_where_they_stand_for_a_number() -> None:
    found = standalone("row = E[id]\nn = len(row)", {"E": torch.eye(3), "id": 2, "len_": 7})
    assert found.given == "E = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])\nid = 2"
    left = pasted(found.text())
    assert left["row"].tolist() == [0.0, 0.0, 1.0]
    assert left["n"] == 3


def test_words_and_tables_are_written_as_python_writes_them_with_their_imports() -> None:
    words = {("l", "o", "w", "</w>"): 5, ("\n", "'", "猫"): 2}
    found = standalone("counts = Counter(pair for word in words for pair in pairwise(word))", {"words": words})
    assert found.exact
    left = pasted(found.text())
    assert left["words"] == words
    assert left["counts"][("'", "猫")] == 1


def test_the_heads_of_a_layer_come_with_queries_first_and_by_name() -> None:
    run = toy()
    step = next(step for step in layer_steps(run.checkpoint, run.trace, "encoder.0") if step.key == "self.heads")
    assert str(step.meaning) == "the queries, head by head"
    assert [str(made.tensor.meaning) for made in step.also] == ["the keys, head by head", "the values, head by head"]
    assert not step.operands


def test_steps_that_are_kept_hold_on_to_no_weights_and_say_the_same() -> None:
    for steps in chains("zh-en"):
        kept = light(steps)
        for index, step in enumerate(kept):
            assert snippet(kept, index) == snippet(steps, index)
            on_here = [tensor for tensor in step.inputs.values() if tensor.device.type == "cpu"]
            assert all(tensor.untyped_storage().nbytes() <= 8 * 64 for tensor in on_here), step.key


class _LetsOthersRun:
    """Garbage: when it is collected, within the parser too, another thread goes on."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0)


@pytest.mark.slow
@pytest.mark.sweep
def test_many_threads_ask_for_code_at_the_same_time() -> None:
    code = "\n".join(f"x{i} = torch.softmax(a{i} @ b, dim=-1)[{i}, :3] + sum(w for w in (1, 2))" for i in range(30))
    begin = threading.Barrier(4)

    def ask() -> None:
        begin.wait()
        for _ in range(60):
            _LetsOthersRun()
            assert standalone(code, {}).imports == "import torch"

    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(20)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            for thread in [threads.submit(ask) for _ in range(4)]:
                thread.result()
    finally:
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)
