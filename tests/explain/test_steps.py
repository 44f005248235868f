"""The arithmetic of a head, number by number, against plain float64 loops and against its own code and formulas."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests import tiny
from tests.eager_transformer import Eager
from tests.explain import variants
from tests.explain.running import run
from vizformer.checkpoints import Checkpoint
from vizformer.explain import Step, attention_steps
from vizformer.model import Trace

VARIANTS = {
    **variants.VARIANTS,
    "post-no-biases": ("encoder-decoder", dict(norm_order="post", bias=False)),
    "pre-no-biases": ("encoder-decoder", dict(norm_order="pre", bias=False, norm_eps=1e-2)),
    "decoder-only-post": ("decoder-only", dict(norm_order="post")),
    "own-scale": ("decoder-only", {**tiny.LLAMA, "attention_scale": 0.3}),
}
# Variant by variant: each is worked out once, by the process that has its tests.
every_variant = pytest.mark.parametrize("variant", VARIANTS, scope="module")


@cache
def example(variant: str) -> tuple[Checkpoint, Trace, Eager]:
    return variants.traced(*VARIANTS[variant])


@cache
def every_step(variant: str) -> list[tuple[str, int, int, list[Step]]]:
    """All sites and heads, each with another query; the first and the last among them."""
    checkpoint, trace, _ = example(variant)
    chosen = []
    for site in trace.sites:
        n_heads, n_q, _ = trace[site].q.shape
        for head in range(n_heads):
            query = head * (n_q - 1) // (n_heads - 1)
            chosen.append((site, head, query, attention_steps(checkpoint, trace, site, head, query)))
    return chosen


@pytest.mark.sample(4)
@every_variant
def test_every_number_is_the_one_of_the_plain_forward(variant: str) -> None:
    _, _, eager = example(variant)
    for site, head, query, steps in every_step(variant):
        for step in steps:
            np.testing.assert_allclose(
                step.result,
                variants.LINES[step.key].value(eager.calls[site], head, query).numpy(),
                rtol=1e-5,
                atol=1e-5,
                err_msg=f"{site} {head} {query} {step.key}",
            )


@pytest.mark.sample(4)
@every_variant
def test_every_proof_holds(variant: str) -> None:
    """Direct are those of the steps whose own numbers the model computed too: it records q and k after norm and rotation."""
    for *_, steps in every_step(variant):
        keys = [step.key for step in steps]
        last = {name: [key for key in keys if key.partition("_")[0] == name][-1] for name in "qk"}
        direct = {*last.values(), "v", "z", "norm" if "norm" in keys else "add"}
        for step in steps:
            assert step.proof.holds, step.key
            assert step.difference < 1e-5
            assert step.proof.direct == (step.key in direct), step.key


@every_variant
@pytest.mark.sample(11)
def test_the_steps_and_their_order(variant: str) -> None:
    config = example(variant)[0].model.config
    for site, _, _, steps in every_step(variant):
        kind = site.rpartition(".")[2]
        assert [step.key for step in steps] == [key for key, line in variants.LINES.items() if line.when(config, kind)]


@pytest.mark.sample(4)
@every_variant
def test_the_code_runs_and_gives_every_result(variant: str) -> None:
    for site, head, query, steps in every_step(variant):
        scope = run(steps)
        assert len({step.variable for step in steps}) == len(steps)
        for step in steps:
            found = scope[step.variable].double().numpy()
            np.testing.assert_allclose(
                np.atleast_1d(found), step.result, rtol=1e-5, atol=1e-5, err_msg=f"{site} {head} {query} {step.key}"
            )


@pytest.mark.sample(12)
@every_variant
def test_sums_term_by_term_add_up(variant: str) -> None:
    with_sums = set()
    for *_, steps in every_step(variant):
        for step in steps:
            if (sums := step.contraction) is None:
                continue
            with_sums.add(step.key)
            result = np.atleast_2d(step.result)
            np.testing.assert_allclose(sums.total(), result, rtol=1e-12, atol=1e-12)
            row, column = result.shape[0] - 1, result.shape[1] // 2
            terms = sums.products(row, column)
            assert terms.shape == (sums.left.shape[1],)
            added = 0.0 if sums.add is None else sums.add[column]
            np.testing.assert_allclose(terms.sum() + added, result[row, column], rtol=1e-12, atol=1e-12)
    assert with_sums == {"q", "k", "v", "dots", "z", "head_out", "attn_out"}


@every_variant
@pytest.mark.sample(32)
def test_operands_are_earlier_results_or_the_models_own(variant: str) -> None:
    """What a step says goes in is what came out before it: the chain has no gap."""
    for *_, steps in every_step(variant):
        result = {step.key: step.result for step in steps}
        for step in steps:
            for operand, sources in zip(step.operands, variants.LINES[step.key].reads, strict=False):
                source = next(key for key in sources.split() if key in result)
                assert np.array_equal(operand.value, result[source]), (step.key, source)
        out = next(step for step in steps if step.key == "attn_out")
        assert any(np.array_equal(row, result["head_out"]) for row in out.operands[0].value)
        add = next(step for step in steps if step.key == "add")
        assert np.array_equal(add.operands[-1].value, result["attn_out"])


@every_variant
def test_axes_and_blocked_cells_fit_the_results(variant: str) -> None:
    _, trace, _ = example(variant)
    for site, head, query, steps in every_step(variant):
        n_k = trace[site].k.shape[1]
        for step in steps:
            assert len(step.axes) == step.result.ndim
            for operand in step.operands:
                assert len(operand.axes) == operand.value.ndim, (step.key, operand.symbol)
            for axis, size in zip(step.axes, step.result.shape, strict=True):
                assert (axis == "keys") <= (size == n_k)
            if step.axes == ("keys",):
                reasons = trace[site].reason(head)[query].numpy()
                assert step.blocked is not None
                assert np.array_equal(step.blocked, reasons != 0)
            else:
                assert step.blocked is None


def test_the_mask_says_why() -> None:
    checkpoint, trace, _ = example("post")

    def text(site: str, query: int) -> str:
        return str(next(s for s in attention_steps(checkpoint, trace, site, 0, query) if s.key == "mask").text)

    n = trace["decoder.0.self"].q.shape[1]
    assert f"{n - 1} of {n} keys are blocked (the future)" in text("decoder.0.self", 0)
    assert f"Nothing is blocked here: position {n - 1} sees every key ({n})" in text("decoder.0.self", n - 1)
    assert "Nothing is blocked here" in text("decoder.1.cross", 0)


@every_variant
def test_every_text_renders(variant: str) -> None:
    """No placeholder is left over, none is missing."""
    for *_, steps in every_step(variant):
        for step in steps:
            messages = [step.title, step.text, step.proof.anchor, *(operand.meaning for operand in step.operands)]
            for message in messages:
                shown = str(message)
                assert shown
                assert not set("{}") & set(shown)
            for formula in (step.formula, step.live, step.symbol, *(operand.symbol for operand in step.operands)):
                assert formula.count("{") == formula.count("}")
                assert "nan" not in formula
                assert "None" not in formula


def test_what_changed_since_another_run_is_nothing_where_both_are_blocked() -> None:
    checkpoint = tiny.checkpoint("decoder-only")
    trace = checkpoint.trace("我有一只猫。")
    step = next(s for s in attention_steps(checkpoint, trace, "decoder.0.self", 0, 1) if np.isneginf(s.result).any())
    before = replace(step, result=step.result - 2.0)
    np.testing.assert_array_equal(step.change_since(before), np.where(np.isneginf(step.result), 0.0, 2.0))
