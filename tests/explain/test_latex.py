"""Formulas with the live numbers: they can be worked out with a pocket calculator, and give the step's result."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest

from tests import tiny
from tests.explain.variants import VARIANTS, traced
from vizformer.explain import Step, attention_steps, latex, layer_steps, output_steps

# What the right-hand side of each live formula must come to: its entry of the result, given the focus (the key with
# the largest weight).  Projections show component 0 of the query, of the first key and of the first value.
SHOWN = {
    "q": 0,
    "k": (0, 0),
    "v": (0, 0),
    "dots": "focus",
    "scores": "focus",
    "mask": "focus",
    "shift": "focus",
    "exp": "focus",
    "sum": 0,
    "weights": "focus",
    "z": 0,
    "head_out": 0,
    "attn_out": 0,
    "add": 0,
    "norm": 0,
    "input": 0,
}


def value(formula: str) -> float:
    """Works out a formula of sums, products, fractions, roots, exponentials and powers of ten."""
    text = formula.replace(")^2", ")**2")
    text = re.sub(r"10\^\{(-?\d+)\}", r"(10.0**(\1))", text)
    text = re.sub(r"2\^\{([^{}]*)\}", r"(2.0**(\1))", text)
    text = (
        text.replace(r"\cdot", "*")
        .replace(r"\infty", "inf")
        .replace(r"\exp(", "exp(")
        .replace(r"\max(", "max(")
        .replace(r"\min(", "min(")
        .replace(r"\tanh(", "tanh(")
    )
    text = re.sub(r"\\tanh\\frac\{([^{}]*)\}\{([^{}]*)\}", r"tanh((\1)/(\2))", text).replace(r"\sigma(", "sigma(")
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)
    assert re.fullmatch(r"[-+*/()0-9.,a-z ]*", text), formula
    names = {"sqrt": math.sqrt, "exp": math.exp, "inf": math.inf, "tanh": math.tanh, "max": max, "min": min}
    return float(eval(text, {**names, "sigma": lambda x: 1 / (1 + math.exp(-x))}))


def shown(step: Step, focus: int) -> float:
    place = SHOWN[step.key]
    return float(step.result[focus if place == "focus" else place])  # type: ignore[index]


@pytest.mark.sample(1)
@pytest.mark.parametrize("norm_order", ["post", "pre"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_numbers_work_out(norm_order: str, bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing elided, every formula can be evaluated."""
    monkeypatch.setattr(latex, "SHOWN_TERMS", 100)
    checkpoint = tiny.checkpoint(d_model=6, n_heads=2, norm_order=norm_order, bias=bias)
    trace = checkpoint.trace("我有 cat", target="The")
    checked = 0
    for site in trace.sites:
        for head in range(2):
            for query in (0, trace[site].q.shape[1] - 1):
                steps = attention_steps(checkpoint, trace, site, head, query)
                focus = int(next(step.result for step in steps if step.key == "weights").argmax())
                for step in steps:
                    first, *rest = step.live.split(r", \qquad ")
                    *middle, last = (part.strip() for part in first.split(" = ")[1:])
                    if "bmatrix" in last:
                        assert [value(cell) for cell in cells(last)] == pytest.approx(step.result, abs=5e-5)
                        continue
                    assert last == latex.number(shown(step, focus)), step.key
                    (formula,) = middle
                    assert value(formula) == pytest.approx(value(last), rel=3e-3, abs=3e-3), step.live
                    for blocked in rest:
                        _, formula, result = blocked.split(" = ")
                        assert value(formula) == value(result) == -math.inf
                    checked += 1
    assert checked > 150


@pytest.mark.sample(7)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_live_formula_works_out_to_its_place_in_the_result(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every option that changes the arithmetic: what is calculated, and the entry that the left side names."""
    monkeypatch.setattr(latex, "SHOWN_TERMS", 100)
    checkpoint, trace, _ = traced(*VARIANTS[variant])
    chains = [attention_steps(checkpoint, trace, site, 1, 1) for site in trace.sites]
    chains += [layer_steps(checkpoint, trace, f"{stack}.{layer}") for stack in trace.tokens for layer in (0, 1)]
    chains.append(output_steps(checkpoint, trace, 1))
    worked_out = 0
    for step in (step for chain in chains for step in chain if " = " in step.live and "matrix" not in step.live):
        for part in re.split(r", \\q?quad ", step.live):
            left, *right = part.split(" = ")
            if step.key.endswith("vectors"):
                continue
            numbers = [value(one) for one in right if not re.search(r"mathrm|sum_|\\\{", one)]
            for one, other in pairwise(numbers):
                assert one == pytest.approx(other, rel=3e-3, abs=3e-3), (step.key, part)
                worked_out += 1
            if numbers and not re.match(r"m_|\\beta|\\sum|g$", left):  # these are not of the result
                assert numbers[-1] == pytest.approx(entry(step, left), rel=1e-2, abs=5.1e-5), (step.key, part)
    assert worked_out > 30


def entry(step: Step, left: str) -> float:
    """The cell that a left side such as S_{0,7,0} or q_2 . k_6 names: of the first head where it names none."""
    named = [int(digits) for digits in re.findall(r"\d+", re.sub(r"\^\{\(\d+\)\}|\^2", "", left))]
    if step.result.size == 1:
        return float(step.result.item())
    at = named[-step.result.ndim :]
    if "hat Q_" in left and step.result.ndim == 1:  # a norm over all heads: its place is counted over all of them
        at[-1] -= len(step.result)
    return float(step.result[(*(0,) * (step.result.ndim - len(at)), *at)])


def cells(matrix: str) -> list[str]:
    return re.sub(r"\\(begin|end)\{bmatrix\}", "", matrix).split("&")


def test_long_sums_keep_their_ends_and_their_result() -> None:
    checkpoint = tiny.checkpoint(d_model=32, n_heads=4)
    trace = checkpoint.trace("我有 cat", target="The cats")
    for step in attention_steps(checkpoint, trace, "decoder.0.cross", 2, 1):
        if step.key in ("q", "z", "attn_out", "head_out"):
            formula, result = step.live.split(" = ", 1)[1].rsplit(" = ", 1)
            assert result == latex.number(float(step.result[0]))
            sums = step.contraction
            assert sums is not None
            terms = [float(term) for term in sums.products(0, 0)]
            said = [value(part) for part in formula.split(" + ") if part.strip() != r"\dots"]
            added = [] if sums.add is None else [float(sums.add[0])]
            few = len(terms) <= 2 * latex.SHOWN_TERMS
            elided = terms if few else [*terms[: latex.SHOWN_TERMS], terms[-1]]
            assert (r"\dots" in formula) == (not few)
            assert said == pytest.approx([*elided, *added], abs=2e-3)


def test_numbers() -> None:
    assert latex.number(0.0) == "0.0000"
    assert latex.number(1.23456) == "1.2346"
    assert latex.number(-2.0) == "-2.0000"
    assert latex.number(-math.inf) == r"-\infty"
    assert latex.number(0.00004) == r"4.00 \cdot 10^{-5}"
    assert latex.number(-1.234e-9) == r"-1.23 \cdot 10^{-9}"
    assert latex.number(0.00005) == "0.0001"
    for small in (4.9e-5, 5.1e-5, 1e-30, -3e-7):
        assert value(latex.number(small)) != 0  # a small number is never shown as 0
    assert latex.factor(-1.0) == "(-1.0000)"
    assert latex.factor(1.0) == "1.0000"
    assert latex.factor(-math.inf) == r"(-\infty)"


def test_sums() -> None:
    assert latex.sum_of(np.array([1.0, -2.0])) == "1.0000 + (-2.0000)"
    assert latex.sum_of_products(np.array([1.0, 2.0]), np.array([-3.0, 4.0]), 0.5) == (
        r"1.0000 \cdot (-3.0000) + 2.0000 \cdot 4.0000 + 0.5000"
    )
    most = 2 * latex.SHOWN_TERMS
    assert latex.sum_of(np.arange(most)).count(" + ") == most - 1
    first = [f"{float(i):.4f}" for i in range(latex.SHOWN_TERMS)]
    assert latex.sum_of(np.arange(most + 1)).split(" + ") == [*first, r"\dots", f"{float(most):.4f}"]


def test_rows() -> None:
    assert [value(cell) for cell in cells(latex.row(np.arange(8.0)))] == list(range(8))
    assert [cell.strip() for cell in cells(latex.row(np.arange(9.0)))] == [
        "0.0000",
        "1.0000",
        "2.0000",
        "3.0000",
        "4.0000",
        r"\cdots",
        "7.0000",
        "8.0000",
    ]
