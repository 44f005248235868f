"""A mixture of experts over all positions: router, softmax, the choice, the chosen networks, their weighted sum."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor, nn

from vizformer.explain import latex
from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64, is_half, set_cells
from vizformer.explain.experts_numbers import MixtureNumbers, expert, mixture_numbers
from vizformer.explain.feedforward_layer import network_steps
from vizformer.explain.feedforward_numbers import FeedForwardNumbers
from vizformer.explain.step import Axis, Contraction, Made, Operand, Proof, Step, sizes
from vizformer.explain.sublayer import ROWS, Sublayer, add_and_norm, bias_of, entry, norm_before
from vizformer.messages import N_
from vizformer.model.experts import MixtureOfExperts
from vizformer.model.feedforward import FeedForward

OF_EXPERTS: tuple[Axis, ...] = ("queries", "experts")
OF_CHOICES: tuple[Axis, ...] = ("choices", "queries", "features")


def experts_sublayer(at: Sublayer, network: MixtureOfExperts, site: str) -> list[Step]:
    """The router and the networks that it chooses, of the layer's feed-forward `site`, "decoder.2.feedforward".

    The networks are shown by choice: row i of choice c is token i in the expert that it chose as its c-th.
    """
    x = at.read
    numbers = mixture_numbers(x, network, at.trace, site)
    through = replace(at.proof(numbers.out), direct=False)
    steps = [
        *norm_before(at, through),
        *_routing(at, x, network, numbers, site),
        *_networks(at, x, network, numbers, through),
        _weighted_sum(at, numbers, through, last=network.shared is None),
    ]
    if network.shared is not None and network.shared_gate is not None:
        steps += _shared(at, x, network.shared, network.shared_gate, numbers, site, through)
    return [*steps, *add_and_norm(at, numbers.out)]


def _routing(at: Sublayer, x: ndarray, network: MixtureOfExperts, numbers: MixtureNumbers, site: str) -> list[Step]:
    """From the rows to the weights of the experts."""
    routing, n_experts, k = at.trace.routing(site), len(network.experts), network.k
    W = float64(network.router.weight).T
    scores = set_cells(at.trace, f"{site}.router", numbers.scores)
    # Sums of many terms in the model's precision: what they are off by, their exponentials are off by as a factor.
    loose = sizes(x, W) if is_half(at.dtype) else 0.0
    scored = Proof.compare(N_("the router's scores recorded at {site}", site=site), scores, routing.scores, terms=loose)
    chances = Proof.compare(
        N_("the router's probabilities recorded at {site}", site=site),
        numbers.probabilities,
        routing.probabilities,
        dtype=at.dtype,
    )
    # What was kept must be the largest there is, also where the choice itself hangs on the last bit of a score.
    largest = -np.sort(-numbers.probabilities, axis=1)[:, :k]
    of_model = torch.gather(routing.probabilities, 1, routing.chosen)
    choice = Proof.compare(
        N_("the {k} largest of the probabilities recorded at {site}", k=k, site=site),
        largest,
        of_model,
        dtype=at.dtype,
    )
    weighed = Proof.compare(
        N_("the weights of the experts recorded at {site}", site=site), numbers.weights, routing.weights, dtype=at.dtype
    )
    kept, weights = (_spread(part, numbers.chosen, n_experts) for part in (numbers.kept, numbers.weights))
    first, wide = int(numbers.chosen[0, 0]), ".float()" if is_half(at.dtype) else ""
    exponentials = np.exp(scores[0] - scores[0].max())
    steps = [
        Step(
            at.key("router"),
            N_("Experts, 1: the router scores them"),
            N_(
                "This layer has {n} feed-forward networks, its experts, and each token goes through {k} of them. The router "
                "scores all of them: one dot product for each. No expert has computed anything yet.",
                n=n_experts,
                k=k,
            ),
            r"S = X W_\mathrm{router}",
            entry("S", x[0], W[:, 0], 0.0, scores[0, 0]),
            (
                Operand("X", N_("the input, one row per token"), x, ROWS),
                Operand(
                    r"W_\mathrm{router}", N_("the router's matrix, one column per expert"), W, ("features", "experts")
                ),
            ),
            "S",
            scores,
            "router = x @ W_router",
            "router",
            scored,
            contraction=None if scores is not numbers.scores or is_half(at.dtype) else Contraction(x, W),
            axes=OF_EXPERTS,
            inputs={"W_router": network.router.weight.detach().T},
        ),
        Step(
            at.key("probabilities"),
            N_("Experts, 2: softmax over the experts"),
            N_("Each row becomes positive and sums to 1: how well each expert fits the token."),
            r"P_{i,e} = \frac{e^{S_{i,e}}}{\sum_{e'} e^{S_{i,e'}}}",
            rf"P_{{0,{first}}} = \frac{{{latex.number(exponentials[first])}}}{{{latex.sum_of(exponentials)}}} = "
            + latex.number(numbers.probabilities[0, first]),
            (),
            "P",
            numbers.probabilities,
            f"probabilities = torch.softmax(router{wide}, dim=-1)",
            "probabilities",
            chances,
            axes=OF_EXPERTS,
        ),
        Step(
            at.key("chosen"),
            N_("Experts, 3: each token keeps the best"),
            N_(
                "Of each row the {k} largest probabilities are kept, the others become 0: these experts compute nothing for "
                "this token. So the layer has the parameters of {n} networks, and the work of {k}.",
                k=k,
                n=n_experts,
            )
            if network.renormalised
            else N_(
                "Of each row the {k} largest probabilities are kept, the others become 0: these experts compute nothing for "
                "this token. So the layer has the parameters of {n} networks, and the work of {k}. This model takes the "
                "probabilities as they are: what is left of a row sums to less than 1.",
                k=k,
                n=n_experts,
            ),
            rf"T_i = \operatorname{{top}}_{{{k}}} P_i, \qquad G_{{i,e}} = P_{{i,e}} \text{{ if }} e \in T_i \text{{, else }} 0",
            rf"T_0 = \{{{', '.join(map(str, numbers.chosen[0]))}\}}, \quad G_{{0,{first}}} = "
            + latex.number(numbers.kept[0, 0]),
            (),
            "G",
            kept,
            f"chosen = probabilities.topk({k}, dim=-1).indices\n"
            "weights = torch.zeros_like(probabilities).scatter(-1, chosen, probabilities.gather(-1, chosen))",
            "weights",
            choice,
            axes=OF_EXPERTS,
            also=(
                Made(
                    "chosen",
                    Operand(
                        "T",
                        N_("the experts of each token, its first choice first"),
                        numbers.chosen,
                        ("queries", "choices"),
                    ),
                ),
            ),
            meaning=N_("the probabilities that are kept"),
        ),
    ]
    if network.renormalised:
        steps.append(
            Step(
                at.key("renormalised"),
                N_("Experts, 4: weights that sum to 1"),
                N_("What was kept is divided by its sum."),
                r"G_{i,e} \leftarrow \frac{G_{i,e}}{\sum_{e' \in T_i} G_{i,e'}}",
                rf"G_{{0,{first}}} = \frac{{{latex.number(numbers.kept[0, 0])}}}{{{latex.sum_of(numbers.kept[0])}}} = "
                + latex.number(numbers.weights[0, 0]),
                (),
                "G",
                weights,
                "weights = weights / weights.sum(-1, keepdim=True)",
                "weights",
                weighed,
                axes=OF_EXPERTS,
            )
        )
    return steps


def _spread(values: ndarray, chosen: Int[ndarray, "n k"], n_experts: int) -> ndarray:
    """[n, k] by choice as [n, n_experts] by expert, 0 for the others."""
    found = np.zeros((len(values), n_experts))
    np.put_along_axis(found, chosen, values, axis=1)
    return found


def _networks(at: Sublayer, x: ndarray, network: MixtureOfExperts, numbers: MixtureNumbers, proof: Proof) -> list[Step]:
    """Every token in its experts: the steps of a feed-forward network, its matrices others for each row."""
    used, first = [int(e) for e in np.unique(numbers.chosen)], int(numbers.chosen[0, 0])
    of_first = expert(network, first)
    gate, kind = of_first.W_gate, activation_kind(of_first.activation)

    def all_choices(part: Callable[[FeedForwardNumbers], ndarray]) -> ndarray:
        return np.stack([part(found) for found in numbers.networks])

    hidden, entering, active, inner, out = (
        all_choices(lambda found: found.hidden),
        all_choices(lambda found: found.entering),
        all_choices(lambda found: found.active),
        all_choices(lambda found: found.inner),
        all_choices(lambda found: found.out),
    )

    def linear(letter: str) -> tuple[nn.Linear, dict[str, Tensor]]:
        """The matrix of the first token's first expert, and those of all experts that some token has chosen."""
        found = {e: getattr(expert(network, e), f"W_{letter}") for e in used}
        inputs = {f"W_{letter}_{e}": one.weight.detach().T for e, one in found.items()}
        return found[first], inputs | {
            f"b_{letter}_{e}": one.bias.detach() for e, one in found.items() if one.bias is not None
        }

    def step(
        key: str,
        title: object,
        text: object,
        letter: str,
        symbol: str,
        variable: str,
        rows: str,
        before: ndarray,
        result: ndarray,
    ) -> Step:
        matrix, inputs = linear(letter)
        W, b = float64(matrix.weight).T, bias_of(matrix)
        bias = "" if matrix.bias is None else f" + b_{letter}[e]"
        tables = f"W_{letter} = {_table(f'W_{letter}', used)}\n"
        tables += "" if matrix.bias is None else f"b_{letter} = {_table(f'b_{letter}', used)}\n"
        code = (
            f"{variable} = torch.stack([\n"
            f"    torch.stack([{rows} @ W_{letter}[e]{bias} for i, e in enumerate(choice.tolist())])\n"
            f"    for {'c, choice in enumerate(chosen.T)' if '[c, i]' in rows else 'choice in chosen.T'}\n"
            "])"
        )
        index = rf"{symbol}_{{c,i}} = {'X_i' if rows == 'x[i]' else ('A' if gate is None else 'B') + '_{c,i}'}"
        index += rf"\, W_\mathrm{{{letter}}}^{{(T_{{i,c}})}}" + (
            "" if matrix.bias is None else rf" + b_\mathrm{{{letter}}}^{{(T_{{i,c}})}}"
        )
        return Step(
            at.key(key),
            title,  # type: ignore[arg-type]
            text,  # type: ignore[arg-type]
            index,
            entry(symbol, before[0], W[:, 0], b[0], result[0, 0, 0]).replace("_{0,0}", "_{0,0,0}", 1),
            (
                Operand(
                    rf"W_\mathrm{{{letter}}}^{{({first})}}",
                    N_(
                        "the matrix W_{letter} of expert {expert}, the first choice of the first token",
                        letter=letter,
                        expert=first,
                    ),
                    W,
                    ("features", "features"),
                ),
            ),
            symbol,
            result,
            tables + code,
            variable,
            proof,
            axes=OF_CHOICES,
            inputs=inputs,
        )

    steps = [
        step(
            "hidden",
            N_("Experts, 5: widen"),
            N_(
                "Each token is widened by its own experts: the first choice of the first token is expert {expert}. {used} of the "
                "{n} experts have been chosen by some token here; the others are not used.",
                expert=first,
                used=len(used),
                n=len(network.experts),
            ),
            "in",
            "H",
            "hidden",
            "x[i]",
            x,
            hidden,
        )
    ]
    if gate is not None:
        steps.append(
            step(
                "gate",
                N_("Experts, 5b: the gate"),
                N_("A second matrix of each expert computes how far the gates of its numbers open."),
                "gate",
                "G'",
                "gate",
                "x[i]",
                x,
                entering,
            )
        )
    letter, variable = ("H", "hidden") if gate is None else ("G'", "gate")
    steps.append(
        Step(
            at.key("activation"),
            N_("Experts, 6: activation"),
            kind.text(active),
            rf"A = {kind.symbol(letter)}",
            rf"A_{{0,0,0}} = {kind.symbol(latex.number(entering[0, 0, 0]))} = {latex.number(active[0, 0, 0])}",
            (),
            "A",
            active,
            f"active = {kind.code(variable)}",
            "active",
            proof,
            axes=OF_CHOICES,
        )
    )
    if gate is not None:
        steps.append(
            Step(
                at.key("gated"),
                N_("Experts, 6b: through the gate"),
                N_("Number by number, the widened row is multiplied by its opened gate."),
                r"B = A \odot H",
                rf"B_{{0,0,0}} = {latex.number(active[0, 0, 0])} \cdot {latex.factor(hidden[0, 0, 0])} = "
                + latex.number(inner[0, 0, 0]),
                (),
                "B",
                inner,
                "active = active * hidden",
                "active",
                proof,
                axes=OF_CHOICES,
            )
        )
    narrow = step(
        "narrow",
        N_("Experts, 7: narrow"),
        N_("Back to the width of the residual stream: what each chosen expert has found for the token."),
        "out",
        "E",
        "found",
        "active[c, i]",
        inner[0],
        out,
    )
    return [*steps, narrow]


def _table(name: str, experts: list[int]) -> str:
    """The tensors of some experts by their numbers, as code."""
    return "{" + ", ".join(f"{e}: {name}_{e}" for e in experts) + "}"


def _weighted_sum(at: Sublayer, numbers: MixtureNumbers, proof: Proof, *, last: bool) -> Step:
    """The outputs of a token's experts, each times its weight; `last`: nothing is added to it."""
    of_first = np.array([found.out[0, 0] for found in numbers.networks])
    result, half = numbers.out if last else numbers.mixed, is_half(at.dtype)
    rounded = ".to(x.dtype)" if half and last else ""
    total = f"(weights.gather(-1, chosen).T[..., None] * found).sum(0){rounded}"
    return Step(
        at.key("mixed"),
        N_("Experts, 8: the weighted sum"),
        N_("What a token's experts have found is summed, each times its weight from the router."),
        r"O_i = \sum_{c} G_{i,T_{i,c}} E_{c,i}",
        rf"O_{{0,0}} = {latex.sum_of_products(numbers.weights[0], of_first)} = {latex.number(result[0, 0])}",
        (),
        "O",
        result,
        f"out = {total}",
        "out",
        proof,
        axes=ROWS,
    )


def _shared(
    at: Sublayer,
    x: ndarray,
    shared: FeedForward,
    opening: nn.Linear,
    numbers: MixtureNumbers,
    site: str,
    proof: Proof,
) -> list[Step]:
    """The network that all tokens go through, how much of it is let through, and the sum."""
    assert numbers.shared is not None
    assert numbers.opened is not None
    recorded = at.trace.routing(site).opened
    assert recorded is not None
    w = float64(opening.weight[0])
    opened = Proof.compare(
        N_("how far the shared expert was opened, recorded at {site}", site=site),
        numbers.opened,
        recorded,
        terms=sizes(x, w[:, None])[:, 0] if is_half(at.dtype) else 0.0,
    )
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
    return [
        *steps,
        Step(
            at.key("opened"),
            N_("Shared expert, 4: how much of it"),
            N_("A number between 0 and 1 for each token: the logistic function of one dot product."),
            r"u_i = \sigma(x_i \cdot w)",
            rf"u_0 = \sigma({latex.sum_of_products(x[0], w)}) = {latex.number(numbers.opened[0])}",
            (Operand("w", N_("the vector that opens the shared expert"), w),),
            "u",
            numbers.opened,
            "opened = torch.sigmoid(x @ w_shared)",
            "opened",
            opened,
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
            (),
            "O",
            numbers.out,
            f"out = (out + opened[:, None] * shared){rounded}",
            "out",
            proof,
            axes=ROWS,
        ),
    ]
