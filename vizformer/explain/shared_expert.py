"""The shared expert of a mixture over all positions: the network that all tokens go through, and what of it is added."""

from dataclasses import replace

from numpy import ndarray
from torch import nn

from vizformer.explain import latex
from vizformer.explain.arrays import float64, is_half
from vizformer.explain.experts_numbers import MixtureNumbers
from vizformer.explain.feedforward_layer import network_steps
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Operand, Proof, Step, sizes
from vizformer.explain.sublayer import ROWS, Sublayer
from vizformer.messages import N_
from vizformer.model.feedforward import FeedForward


def shared_expert_steps(
    at: Sublayer,
    x: ndarray,
    shared: FeedForward,
    opening: nn.Linear | None,
    numbers: MixtureNumbers,
    site: str,
    proof: Proof,
) -> list[Step]:
    """The network that all tokens go through, how much of it is let through (all where `opening` is None), and the sum."""
    assert numbers.shared is not None
    titles = {
        "hidden": N_("Shared expert, 1: widen"),
        "gate": N_("Shared expert, 1b: the gate"),
        "activation": N_("Shared expert, 2: activation"),
        "gated": N_("Shared expert, 2b: through the gate"),
        "narrow": N_("Shared expert, 3: narrow"),
    }
    steps = []
    for step in network_steps(at, x, shared, numbers.shared, proof):
        part = step.key.rpartition(".")[2]
        steps.append(replace(step, key=at.key(f"shared_{part}"), title=titles[part]))
    steps[0] = replace(
        steps[0],
        text=N_(
            "One more network, the shared expert, which no router chooses: all tokens go through it. {d_model} numbers become "
            "{d_ff}.",
            d_model=x.shape[1],
            d_ff=numbers.shared.hidden.shape[1],
        ),
    )
    steps[-1] = replace(
        steps[-1],
        symbol="E'",
        formula=steps[-1].formula.replace("O =", "E' =", 1),
        live=steps[-1].live.replace("O_", "E'_", 1),
        code=steps[-1].code.replace("out =", "shared =", 1),
        variable="shared",
    )
    rounded = ".to(x.dtype)" if is_half(at.dtype) else ""
    if opening is None:
        return [
            *steps,
            Step(
                at.key("both"),
                N_("Experts and shared expert together"),
                N_("What the shared expert has found is added to the weighted sum."),
                r"O_i \leftarrow O_i + E'_i",
                rf"O_{{0,0}} = {latex.number(numbers.mixed[0, 0])} + {latex.number(numbers.shared.out[0, 0])} = "
                + latex.number(numbers.out[0, 0]),
                "O",
                numbers.out,
                f"out = (out + shared){rounded}",
                proof,
                axes=ROWS,
            ),
        ]
    recorded = at.trace.routing(site).opened
    assert numbers.opened is not None
    assert recorded is not None
    w = float64(opening.weight[0])
    opened = Proof.compare(
        N_("how far the shared expert was opened, recorded in {place}", place=in_words(site)),
        numbers.opened,
        recorded,
        terms=sizes(x, w[:, None])[:, 0] if is_half(at.dtype) else 0.0,
    )
    return [
        *steps,
        Step(
            at.key("opened"),
            N_("Shared expert, 4: how much of it"),
            N_("A number between 0 and 1 for each token: the logistic function of one dot product."),
            r"u_i = \sigma(x_i \cdot w)",
            rf"u_0 = \sigma({latex.sum_of_products(x[0], w)}) = {latex.number(numbers.opened[0])}",
            "u",
            numbers.opened,
            "opened = torch.sigmoid(x @ w_shared)",
            opened,
            operands=(Operand("w", N_("the vector that opens the shared expert"), w),),
            axes=("queries",),
            inputs={"w_shared": opening.weight[0].detach()},
        ),
        Step(
            at.key("both"),
            N_("Experts and shared expert together"),
            N_("What the shared expert has found is added to the weighted sum, as far as it was opened."),
            r"O_i \leftarrow O_i + u_i E'_i",
            rf"O_{{0,0}} = {latex.number(numbers.mixed[0, 0])} + {latex.factor(numbers.opened[0])} \cdot "
            rf"{latex.factor(numbers.shared.out[0, 0])} = {latex.number(numbers.out[0, 0])}",
            "O",
            numbers.out,
            f"out = (out + opened[:, None] * shared){rounded}",
            proof,
            axes=ROWS,
        ),
    ]
