"""A mixture of experts over all positions: router, softmax, the choice, the chosen networks, their weighted sum, the shared expert."""

from dataclasses import replace

import numpy as np
from numpy import ndarray
from torch import nn

from vizformer.explain import latex
from vizformer.explain.activations import network_activation
from vizformer.explain.arrays import float64, is_half
from vizformer.explain.experts_numbers import MixtureNumbers, expert, mixture_numbers
from vizformer.explain.experts_router import router_steps
from vizformer.explain.feedforward_layer import network_steps
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Axis, Operand, Proof, Step, sizes
from vizformer.explain.sublayer import (
    OUTPUT_NORM,
    ROWS,
    Sublayer,
    add_and_norm,
    bias_of,
    entry,
    inner_norm,
    norm_before,
)
from vizformer.messages import N_, Message
from vizformer.model.experts import MixtureOfExperts
from vizformer.model.feedforward import FeedForward

OF_CHOICES: tuple[Axis, ...] = ("choices", "queries", "features")


def experts_sublayer(at: Sublayer, network: MixtureOfExperts, site: str) -> list[Step]:
    """The router and the networks that it chooses, of the layer's feed-forward `site`, "decoder.2.feedforward".

    The networks are shown by choice: row i of choice c is token i in the expert that it chose as its c-th.
    """
    numbers = mixture_numbers(at.read, network, at.trace, site)
    through = replace(at.proof(numbers.out), direct=False)
    steps = [
        *norm_before(at, through),
        *router_steps(at, network, numbers, site),
        *_networks(at, network, numbers, through),
        _weighted_sum(at, numbers, through, network),
    ]
    if network.norms is not None:
        steps.append(
            inner_norm(
                at.maker(through),
                "mixed_norm",
                N_("Experts, 8: normalise what they have found"),
                OUTPUT_NORM,
                network.norms.experts_output,
                numbers.mixed,
                ("O", "out"),
                ("O", "out"),
            )
        )
    if network.shared is not None:
        steps += shared_expert_steps(at, network, network.shared, numbers, site, through)
    return [*steps, *add_and_norm(at, numbers.out)]


def _networks(at: Sublayer, network: MixtureOfExperts, numbers: MixtureNumbers, proof: Proof) -> list[Step]:
    """Every token in its experts: the steps of a feed-forward network, its matrices others for each row."""
    x = numbers.of_experts
    used, first = [int(e) for e in np.unique(numbers.chosen)], int(numbers.chosen[0, 0])
    gate, kind = expert(network, first).W_gate, network_activation(expert(network, first))

    hidden, entering, active, inner, out = (  # each [k, n, width]
        np.stack([getattr(found, part) for found in numbers.networks])
        for part in ("hidden", "entering", "active", "inner", "out")
    )
    make = at.maker(proof, OF_CHOICES)
    enters, read, entered = ("X_i", "x[i]", x[0]) if network.norms is None else ("R'_i", "entered[i]", x[0])
    if network.inputs_weighed:
        enters, read, entered = (
            rf"G_{{i,T_{{i,c}}}} {enters}",
            f"(weights[i, e] * {read})",
            numbers.weights[0, 0] * x[0],
        )
        read = f"{read}.to(x.dtype)" if is_half(at.dtype) else read
    last = "A" if gate is None else "B"

    def product(
        key: str,
        title: Message,
        text: Message,
        letter: str,
        rows: str,
        code: str,
        made: tuple[str, str],
        row: ndarray,
        result: ndarray,
    ) -> Step:
        """`rows` and `code` are what is multiplied, in symbols and in code, `row` the first one; `made` names the result."""
        linears: dict[int, nn.Linear] = {e: getattr(expert(network, e), f"W_{letter}") for e in used}
        W, b = float64(linears[first].weight).T, bias_of(linears[first])
        biased, index = linears[first].bias is not None, rf"_\mathrm{{{letter}}}^{{(T_{{i,c}})}}"
        matrix = N_(
            "the matrix W_{letter} of expert {expert}, the first choice of the first token", letter=letter, expert=first
        )
        return make(
            key,
            title,
            text,
            rf"{made[0]}_{{c,i}} = {rows}\, W{index}" + (f" + b{index}" if biased else ""),
            entry(made[0], row, W[:, 0], b[0], result[0, 0, 0]).replace("_{0,0}", "_{0,0,0}", 1),
            made[0],
            result,
            _by_choice(made[1], letter, code, used, bias=biased),
            operands=(Operand(rf"W_\mathrm{{{letter}}}^{{({first})}}", matrix, W, ("features", "features")),),
            inputs={f"W_{letter}_{e}": linear.weight.detach().T for e, linear in linears.items()}
            | {f"b_{letter}_{e}": linear.bias.detach() for e, linear in linears.items() if linear.bias is not None},
        )

    weighed = N_("Each row enters an expert times the router's weight for it.")
    text = N_(
        "Each token is widened by its own experts: the first choice of the first token is expert {expert}. {used} of "
        "the {n} experts have been chosen by some token here; the others are not used.",
        expert=first,
        used=len(used),
        n=len(network.experts),
    )
    text = N_("{first} {second}", first=text, second=weighed) if network.inputs_weighed else text
    steps = [product("hidden", N_("Experts, 4: widen"), text, "in", enters, read, ("H", "hidden"), entered, hidden)]
    if network.norms is not None:
        steps.insert(
            0,
            inner_norm(
                at.maker(proof),
                "read",
                N_("Experts: what they read"),
                N_("The experts have a norm of their own, the same for all of them."),
                network.norms.experts,
                at.read,
                ("X", "x"),
                ("R'", "entered"),
            ),
        )
    if gate is not None:
        text = N_("A second matrix of each expert computes how far the gates of its numbers open.")
        title = N_("Experts, 4b: the gate")
        steps.append(product("gate", title, text, "gate", enters, read, ("G'", "gate"), entered, entering))
    letter, variable = ("H", "hidden") if gate is None else ("G'", "gate")
    steps.append(
        make(
            "activation",
            N_("Experts, 5: activation"),
            kind.text(active),
            rf"A = {kind.symbol(letter)}",
            rf"A_{{0,0,0}} = {kind.symbol(latex.number(entering[0, 0, 0]))} = {latex.number(active[0, 0, 0])}",
            "A",
            active,
            f"active = {kind.code(variable)}",
        )
    )
    if gate is not None:
        steps.append(
            make(
                "gated",
                N_("Experts, 5b: through the gate"),
                kind.partner_text(),
                rf"B = A \odot {kind.partner_symbol('H')}",
                rf"B_{{0,0,0}} = {latex.number(active[0, 0, 0])} \cdot "
                rf"{kind.partner_symbol(latex.factor(hidden[0, 0, 0]))} = " + latex.number(inner[0, 0, 0]),
                "B",
                inner,
                f"active = active * {kind.partner_code('hidden')}",
            )
        )
    text = N_("Back to the width of the residual stream: what each chosen expert has found for the token.")
    title, rows, made = N_("Experts, 6: narrow"), f"{last}_{{c,i}}", ("E", "found")
    return [*steps, product("narrow", title, text, "out", rows, "active[c, i]", made, inner[0, 0], out)]


def _by_choice(variable: str, letter: str, rows: str, used: list[int], *, bias: bool) -> str:
    """In code, by choice, then by token: the row times the matrix of its expert, of those that were `used`."""
    names = [f"W_{letter}", *([f"b_{letter}"] if bias else [])]
    tables = [f"{name} = {{{', '.join(f'{e}: {name}_{e}' for e in used)}}}" for name in names]
    numbered = "c, " if "c," in rows else ""
    choices = "enumerate(chosen.T)" if numbered else "chosen.T"
    product = f"{rows} @ W_{letter}[e]" + (f" + b_{letter}[e]" if bias else "")
    return "\n".join(
        [
            *tables,
            f"{variable} = torch.stack([",
            f"    torch.stack([{product} for i, e in enumerate(choice.tolist())])",
            f"    for {numbered}choice in {choices}",
            "])",
        ]
    )


def _weighted_sum(at: Sublayer, numbers: MixtureNumbers, proof: Proof, network: MixtureOfExperts) -> Step:
    """The outputs of a token's experts, each times its weight, but where their inputs were weighed."""
    last, normed, weighed = network.shared is None, network.norms is not None, network.inputs_weighed
    of_first = np.array([found.out[0, 0] for found in numbers.networks])
    result, half = numbers.out if last else numbers.mixed, is_half(at.dtype)
    rounded = ".to(x.dtype)" if half and (last or normed) else ""
    by = "" if weighed else "weights.gather(-1, chosen).T[..., None] * "
    total = f"({by}found).sum(0){rounded}"
    factors = np.ones_like(numbers.weights[0]) if weighed else numbers.weights[0]
    return Step(
        at.key("mixed"),
        N_("Experts, 7: the sum") if weighed else N_("Experts, 7: the weighted sum"),
        N_("What a token's experts have found is summed: their inputs were weighed already.")
        if weighed
        else N_("What a token's experts have found is summed, each times its weight from the router."),
        r"O_i = \sum_{c} E_{c,i}" if weighed else r"O_i = \sum_{c} G_{i,T_{i,c}} E_{c,i}",
        rf"O_{{0,0}} = {latex.sum_of_products(factors, of_first)} = {latex.number(result[0, 0])}",
        "O",
        result,
        f"out = {total}",
        proof,
        axes=ROWS,
    )


def shared_expert_steps(
    at: Sublayer,
    network: MixtureOfExperts,
    shared: FeedForward,
    numbers: MixtureNumbers,
    site: str,
    proof: Proof,
) -> list[Step]:
    """The network that all tokens go through, how much of it is let through (all where there is no gate), and the sum."""
    assert numbers.shared is not None
    assert numbers.shared_found is not None
    x, opening = numbers.of_shared, network.shared_gate
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
    if network.norms is not None:
        titles = {"read": N_("Shared expert: what it reads"), "norm": N_("Shared expert: normalise what it has found")}
        text = N_("The shared expert has a norm of its own.")
        of, make, found = network.norms, at.maker(proof), ("E'", "shared")
        steps = [
            inner_norm(make, "shared_read", titles["read"], text, of.shared, at.read, ("X", "x"), ("X'", "x")),
            *steps,
            inner_norm(
                make, "shared_norm", titles["norm"], OUTPUT_NORM, of.shared_output, numbers.shared.out, found, found
            ),
        ]
    rounded = ".to(x.dtype)" if is_half(at.dtype) else ""
    if opening is None:
        return [
            *steps,
            Step(
                at.key("both"),
                N_("Experts and shared expert together"),
                N_("What the shared expert has found is added to the weighted sum."),
                r"O_i \leftarrow O_i + E'_i",
                rf"O_{{0,0}} = {latex.number(numbers.found[0, 0])} + {latex.number(numbers.shared_found[0, 0])} = "
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
