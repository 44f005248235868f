"""The router of a mixture of experts over all positions: scores, softmax, the choice, the weights."""

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.explain import latex
from vizformer.explain.arrays import float64, is_half, set_cells
from vizformer.explain.experts_numbers import MixtureNumbers
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Axis, Contraction, Made, Operand, Proof, Step, sizes
from vizformer.explain.sublayer import ROWS, Sublayer, bias_of, entry, linear_code, linear_inputs
from vizformer.messages import N_
from vizformer.model.experts import MixtureOfExperts

OF_EXPERTS: tuple[Axis, ...] = ("queries", "experts")


def router_steps(at: Sublayer, x: ndarray, network: MixtureOfExperts, numbers: MixtureNumbers, site: str) -> list[Step]:
    """From the rows to the weights of the experts."""
    routing, n_experts, k = at.trace.routing(site), len(network.experts), network.k
    W, b, place = float64(network.router.weight).T, bias_of(network.router), in_words(site)
    biased = network.router.bias is not None
    scores = set_cells(at.trace, f"{site}.router", numbers.scores)
    # Sums of many terms in the model's precision: what they are off by, their exponentials are off by as a factor.
    loose = sizes(x, W) if is_half(at.dtype) else 0.0
    scored = Proof.compare(
        N_("the router's scores recorded in {place}", place=place), scores, routing.scores, terms=loose
    )
    chances = Proof.compare(
        N_("the router's probabilities recorded in {place}", place=place),
        numbers.probabilities,
        routing.probabilities,
        dtype=at.dtype,
    )
    # What was kept must be the largest there is, also where the choice itself depends on the last bit of a score.
    largest = -np.sort(-numbers.probabilities, axis=1)[:, :k]
    of_model = torch.gather(routing.probabilities, 1, routing.chosen)
    choice = Proof.compare(
        N_("the {k} largest of the probabilities recorded in {place}", k=k, place=place),
        largest,
        of_model,
        dtype=at.dtype,
    )
    weighed = Proof.compare(
        N_("the weights of the experts recorded in {place}", place=place),
        numbers.weights,
        routing.weights,
        dtype=at.dtype,
    )
    kept, weights = (_spread(part, numbers.chosen, n_experts) for part in (numbers.kept, numbers.weights))
    first, wide = int(numbers.chosen[0, 0]), ".float()" if is_half(at.dtype) else ""
    exponentials = np.exp(scores[0] - scores[0].max())
    make = at.maker(scored, OF_EXPERTS)
    steps = [
        make(
            "router",
            N_("Experts, 1: the router scores them"),
            N_(
                "This layer has {n} feed-forward networks, its experts, and each token goes through {k} of them. The router "
                "scores all of them: one dot product for each. No expert has computed anything yet.",
                n=n_experts,
                k=k,
            ),
            r"S = X W_\mathrm{router}" + (r" + b_\mathrm{router}" if biased else ""),
            entry("S", x[0], W[:, 0], b[0], scores[0, 0]),
            "S",
            scores,
            f"router = x{linear_code(network.router, 'router')}",
            operands=(
                Operand("X", N_("the input, one row per token"), x, ROWS),
                Operand(
                    r"W_\mathrm{router}", N_("the router's matrix, one column per expert"), W, ("features", "experts")
                ),
            ),
            contraction=None
            if scores is not numbers.scores or is_half(at.dtype)
            else Contraction(x, W, b if biased else None),
            inputs=linear_inputs(network.router, "router"),
            meaning=N_("the scores: one row per token, one column per expert"),
        ),
        make(
            "probabilities",
            N_("Experts, 2: softmax over the experts"),
            N_("Each row becomes positive and sums to 1: how well each expert fits the token."),
            r"P_{i,e} = \frac{e^{S_{i,e}}}{\sum_{e'} e^{S_{i,e'}}}",
            rf"P_{{0,{first}}} = \frac{{{latex.number(exponentials[first])}}}{{{latex.sum_of(exponentials)}}} = "
            + latex.number(numbers.probabilities[0, first]),
            "P",
            numbers.probabilities,
            f"probabilities = torch.softmax(router{wide}, dim=-1)",
            proof=chances,
            meaning=N_("the probabilities: one row per token, one column per expert"),
        ),
        make(
            "chosen",
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
            "G",
            kept,
            f"chosen = probabilities.topk({k}, dim=-1).indices\n"
            "weights = torch.zeros_like(probabilities).scatter(-1, chosen, probabilities.gather(-1, chosen))",
            proof=choice,
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
            meaning=N_("the probabilities that are kept: one row per token, one column per expert"),
        ),
    ]
    if network.renormalised:
        steps.append(
            make(
                "renormalised",
                N_("Experts, 3b: weights that sum to 1"),
                N_("What was kept is divided by its sum."),
                r"G_{i,e} \leftarrow \frac{G_{i,e}}{\sum_{e' \in T_i} G_{i,e'}}",
                rf"G_{{0,{first}}} = \frac{{{latex.number(numbers.kept[0, 0])}}}{{{latex.sum_of(numbers.kept[0])}}} = "
                + latex.number(numbers.weights[0, 0]),
                "G",
                weights,
                "weights = weights / weights.sum(-1, keepdim=True)",
                proof=weighed,
                meaning=N_("the weights: one row per token, one column per expert"),
            )
        )
    return steps


def _spread(
    values: Float[ndarray, "n k"], chosen: Int[ndarray, "n k"], n_experts: int
) -> Float[ndarray, "n n_experts"]:
    """[n, k] by choice as [n, n_experts] by expert, 0 for the others."""
    found = np.zeros((len(values), n_experts))
    np.put_along_axis(found, chosen, values, axis=1)
    return found
