"""The router of a mixture of experts over all positions: scores, softmax, the choice, the weights."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.explain import latex
from vizformer.explain.arrays import float64, is_half, set_cells
from vizformer.explain.experts_numbers import MixtureNumbers, expert_factors
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Axis, Contraction, Made, Operand, Proof, Step, sizes
from vizformer.explain.sublayer import ROWS, Sublayer, bias_of, entry, inner_norm, linear_code, linear_inputs
from vizformer.messages import N_
from vizformer.model.experts import MixtureOfExperts

OF_EXPERTS: tuple[Axis, ...] = ("queries", "experts")


def router_steps(at: Sublayer, network: MixtureOfExperts, numbers: MixtureNumbers, site: str) -> list[Step]:
    """From the rows to the weights of the experts."""
    x = numbers.of_router
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
    plain = network.correction is None and network.groups == 1
    largest = -np.sort(-numbers.preferred, axis=1)[:, :k]
    of_model = torch.gather(network.preferred(routing.probabilities).detach(), 1, routing.chosen)
    choice = Proof.compare(
        N_("the {k} largest of the probabilities recorded in {place}", k=k, place=place)
        if plain
        else N_("the {k} largest of those that the probabilities recorded in {place} give", k=k, place=place),
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
    factors, unscaled = expert_factors(network, numbers.chosen), replace(weighed, direct=False)
    if factors.all():  # of a weight times 0 nothing is left to compare
        unscaled = Proof.compare(
            N_("the weights of the experts recorded in {place}, without their factor", place=place),
            numbers.shares,
            routing.weights / torch.from_numpy(factors).to(routing.weights),
            dtype=at.dtype,
        )
    kept, shares = (_spread(part, numbers.chosen, n_experts) for part in (numbers.kept, numbers.shares))
    sigmoid = network.scores == "sigmoid"
    first, wide = int(numbers.chosen[0, 0]), ".float()" if is_half(at.dtype) else ""
    exponentials = np.exp(scores[0] - scores[0].max())
    make = at.maker(scored, OF_EXPERTS)
    steps: list[Step] = []
    rows, read = "X", "x"
    if network.norms is not None:
        rows, read = rf"\frac{{R}}{{\sqrt{{{x.shape[1]}}}}}", f"(routed * {x.shape[1]}**-0.5)"
        steps.append(
            inner_norm(
                at.maker(replace(scored, direct=False)),
                "router_norm",
                N_("Experts: what the router reads"),
                N_(
                    "The router has a norm of its own. What it makes is divided by √{width} below, so that the scores of a wide "
                    "model stay small.",
                    width=x.shape[1],
                ),
                network.norms.router,
                at.read,
                ("X", "x"),
                ("R", "routed"),
            )
        )
    steps += [
        make(
            "router",
            N_("Experts, 1: the router scores them"),
            N_(
                "This layer has {n} feed-forward networks, its experts, and each token goes through {k} of them. The router "
                "scores all of them: one dot product for each. No expert has computed anything yet.",
                n=n_experts,
                k=k,
            ),
            rf"S = {rows} W_\mathrm{{router}}" + (r" + b_\mathrm{router}" if biased else ""),
            entry("S", x[0], W[:, 0], b[0], scores[0, 0]),
            "S",
            scores,
            f"router = {read}{linear_code(network.router, 'router')}",
            operands=(
                Operand(rows, N_("the input, one row per token"), x, ROWS),
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
            N_("Experts, 2: sigmoid of each score") if sigmoid else N_("Experts, 2: softmax over the experts"),
            N_("Each score by itself becomes a number between 0 and 1: how well the expert fits the token.")
            if sigmoid
            else N_("Each row becomes positive and sums to 1: how well each expert fits the token."),
            r"P_{i,e} = \sigma(S_{i,e})" if sigmoid else r"P_{i,e} = \frac{e^{S_{i,e}}}{\sum_{e'} e^{S_{i,e'}}}",
            (
                rf"P_{{0,{first}}} = \sigma({latex.number(scores[0, first])}) = "
                if sigmoid
                else rf"P_{{0,{first}}} = \frac{{{latex.number(exponentials[first])}}}{{{latex.sum_of(exponentials)}}} = "
            )
            + latex.number(numbers.probabilities[0, first]),
            "P",
            numbers.probabilities,
            f"probabilities = torch.sigmoid(router{wide})"
            if sigmoid
            else f"probabilities = torch.softmax(router{wide}, dim=-1)",
            proof=chances,
            meaning=N_("the probabilities: one row per token, one column per expert"),
        ),
        *_preferences(make, network, numbers, choice),
        make(
            "chosen",
            N_("Experts, 3: each token keeps the best"),
            N_(
                "Of each row the {k} largest probabilities are kept, the others become 0: these experts compute nothing for "
                "this token. So the layer has the parameters of {n} networks, and the work of {k}.",
                k=k,
                n=n_experts,
            )
            if plain and network.renormalised
            else N_(
                "For each token the {k} experts with the largest of these numbers keep their probabilities, the others become "
                "0: these experts compute nothing for this token. So the layer has the parameters of {n} networks, and the "
                "work of {k}.",
                k=k,
                n=n_experts,
            )
            if not plain or sigmoid
            else N_(
                "Of each row the {k} largest probabilities are kept, the others become 0: these experts compute nothing for "
                "this token. So the layer has the parameters of {n} networks, and the work of {k}. This model takes the "
                "probabilities as they are: what is left of a row sums to less than 1.",
                k=k,
                n=n_experts,
            ),
            rf"T_i = \operatorname{{top}}_{{{k}}} {'P' if plain else 'C'}_i, \qquad G_{{i,e}} = P_{{i,e}} \text{{ if }} e \in T_i \text{{, else }} 0",
            rf"T_0 = \{{{', '.join(map(str, numbers.chosen[0]))}\}}, \quad G_{{0,{first}}} = "
            + latex.number(numbers.kept[0, 0]),
            "G",
            kept,
            f"chosen = {'probabilities' if plain else 'preferred'}.topk({k}, dim=-1).indices\n"
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
                + latex.number(numbers.shares[0, 0]),
                "G",
                shares,
                "weights = weights / weights.sum(-1, keepdim=True)",
                proof=weighed if (factors == 1).all() else unscaled,
                meaning=N_("the weights: one row per token, one column per expert"),
            )
        )
    if network.scale != 1 or network.expert_scales is not None:
        factor, scales = latex.number(float(factors[0, 0])), network.expert_scales
        one = scales is None
        steps.append(
            make(
                "scaled",
                N_("Experts, 3c: the weights times a factor"),
                N_(
                    "All weights are multiplied by one number, so that the experts weigh more beside what is added as it is."
                )
                if one
                else N_("Each weight is multiplied by a number that its expert has learned."),
                rf"G \leftarrow {factor}\, G" if one else r"G_{i,e} \leftarrow s_e\, G_{i,e}",
                rf"G_{{0,{first}}} = {factor} \cdot {latex.number(numbers.shares[0, 0])} = "
                + latex.number(numbers.weights[0, 0]),
                "G",
                _spread(numbers.weights, numbers.chosen, n_experts),
                "weights = weights * "
                + " * ".join([*([] if network.scale == 1 else [repr(network.scale)]), *([] if one else ["scales"])]),
                proof=weighed,
                inputs={} if scales is None else {"scales": scales.detach()},
                meaning=N_("the weights: one row per token, one column per expert"),
            )
        )
    return steps


def _preferences(
    make: Callable[..., Step], network: MixtureOfExperts, numbers: MixtureNumbers, proof: Proof
) -> Iterator[Step]:
    """By what experts are chosen, where it is not their probabilities: these corrected, and of the best groups alone."""
    name, of_all = "probabilities", numbers.probabilities
    if network.correction is not None:
        c = float64(network.correction)
        of_all, name = of_all + c, "preferred"
        yield make(
            "corrected",
            N_("Experts, 2b: a correction for the choice"),
            N_(
                "A number for each expert is added, learned so that all experts are used about equally often. It decides "
                "which experts are chosen, and not by what they are weighed."
            ),
            r"C_{i,e} = P_{i,e} + c_e",
            rf"C_{{0,0}} = {latex.number(numbers.probabilities[0, 0])} + {latex.factor(c[0])} = {latex.number(of_all[0, 0])}",
            "C",
            of_all,
            "preferred = probabilities + correction",
            proof=proof,
            operands=(Operand("c", N_("the correction, a number for each expert"), c, ("experts",)),),
            inputs={"correction": network.correction.detach()},
            meaning=N_("what experts are chosen by: one row per token, one column per expert"),
        )
    if network.groups > 1:
        groups, used, size = network.groups, network.groups_used, of_all.shape[1] // network.groups
        told = dict(n=groups, size=size, used=used)
        yield make(
            "grouped",
            N_("Experts, 2c: the best groups"),
            N_(
                "The experts stand in {n} groups of {size} neighbours. For each token {used} groups are kept, those whose two "
                "largest numbers have the largest sum; the experts of the others cannot be chosen.",
                **told,
            )
            if network.group_best == 2
            else N_(
                "The experts stand in {n} groups of {size} neighbours. For each token {used} groups are kept, those whose best "
                "expert has the largest number; the experts of the others cannot be chosen.",
                **told,
            ),
            r"C_{i,e} \leftarrow -\infty \text{ outside of the best groups}",
            rf"\operatorname{{best}}_0 = \{{{', '.join(str(g) for g in range(groups) if np.isfinite(numbers.preferred[0, g * size]))}\}}",
            "C",
            numbers.preferred,
            f"apart = {name}.unflatten(-1, ({groups}, -1))\n"
            f"best = apart.topk({network.group_best}, dim=-1).values.sum(-1).topk({used}, dim=-1).indices\n"
            "left_out = torch.ones_like(apart[..., 0], dtype=torch.bool).scatter(-1, best, False)\n"
            "preferred = apart.masked_fill(left_out[..., None], -torch.inf).flatten(-2)",
            proof=proof,
            meaning=N_("what experts are chosen by: one row per token, one column per expert"),
        )


def _spread(
    values: Float[ndarray, "n k"], chosen: Int[ndarray, "n k"], n_experts: int
) -> Float[ndarray, "n n_experts"]:
    """[n, k] by choice as [n, n_experts] by expert, 0 for the others."""
    found = np.zeros((len(values), n_experts))
    np.put_along_axis(found, chosen, values, axis=1)
    return found
