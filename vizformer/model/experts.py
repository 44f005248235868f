"""Mixture of experts: many feed-forward networks in a layer, of which each token goes through a few."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.feedforward import FeedForward
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.norms import norm


class ExpertNorms(nn.Module):
    """RMSNorms inside of a mixture: what the router, the experts and the shared expert read, and what these two make.

    The feed-forward then has no norm before all of it.

    Source: Google DeepMind 2026, "Gemma 4", as `transformers` has it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.router, self.experts, self.shared = norm(config), norm(config), norm(config)
        self.experts_output, self.shared_output = norm(config), norm(config)


class MixtureOfExperts(nn.Module):
    """A router scores the experts for every token; those with the k largest scores compute, and are summed by weight.

    p = softmax(x W_router + b_router),   T = the k largest of p,   g_e = p_e / sum_{e' in T} p_e'   (or g_e = p_e)
    y = sum_{e in T} g_e FFN_e(x)   (+ sigmoid(x w_shared) FFN_shared(x))

    Where the config says so, p = sigmoid(x W_router); T are the k largest of p + c, c a number for each expert, or of those
    in the best groups (`preferred`); g_e is multiplied by a factor; the shared expert is added as it is; and
    y = sum_{e in T} FFN_e(g_e x).  With `ExpertNorms` N and a learned number s_e for each expert

    p = softmax(N_r(x) / sqrt(d_model) W_router),   y = N'(sum_{e in T} s_e g_e FFN_e(N(x))) + N''_out(FFN_shared(N''(x)))

    The softmax and the sum are computed in float32 where the model computes in less, and rounded once.  There is no loss
    here that keeps the experts equally busy: it belongs to training (Shazeer et al. 2017, section 4).

    Source: Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer",
    section 2; Jiang et al. 2024, "Mixtral of Experts", section 2.1; for the shared expert Yang et al. 2024, "Qwen2
    Technical Report", section 2.2.2; for sigmoid, correction and groups DeepSeek-AI 2024, "DeepSeek-V3 Technical Report",
    section 2.1.2.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.n_experts is None:
            raise ValueError("a layer of experts needs n_experts")
        self.k, self.renormalised = config.experts_per_token, config.expert_weights == "renormalised"
        self.scores, self.scale = config.router_scores, config.expert_scale
        self.inputs_weighed = config.expert_inputs_weighed
        self.groups, self.groups_used = config.router_groups, config.router_groups_used
        self.group_best = config.router_group_best
        self.router = nn.Linear(config.d_model, config.n_experts, bias=config.router_bias)
        self.correction = nn.Parameter(torch.zeros(config.n_experts)) if config.router_correction else None
        self.experts = nn.ModuleList(FeedForward(config, config.expert_width) for _ in range(config.n_experts))
        self.shared = None if config.d_shared_expert is None else FeedForward(config, config.d_shared_expert)
        gated = self.shared is not None and config.shared_expert_gate
        self.shared_gate = nn.Linear(config.d_model, 1, bias=False) if gated else None
        self.norms = ExpertNorms(config) if config.expert_norms else None
        self.expert_scales = nn.Parameter(torch.ones(config.n_experts)) if config.expert_norms else None

    def forward(
        self, x: Float[Tensor, "b n d_model"], run: ForwardPass | None = None, name: str = ""
    ) -> Float[Tensor, "b n d_model"]:
        """`name` is the layer's place in the model, by which `run` knows the router's scores."""
        of_router, of_experts, of_shared = self.read(x)
        scores = self.router(of_router)  # [b, n, n_experts]
        scores = scores if run is None else run.router_scores(f"{name}.feedforward", scores)
        wide = _wide(scores)
        probabilities = (
            torch.sigmoid(wide) if self.scores == "sigmoid" else torch.softmax(wide, dim=-1)
        )  # [b, n, n_experts]
        weights, chosen = self.choose(probabilities)  # [b, n, k] each
        out = self.mix(of_experts.flatten(0, 1), weights.flatten(0, 1), chosen.flatten(0, 1)).reshape(x.shape)
        if self.norms is not None:
            out = _wide(self.norms.experts_output(out.to(x.dtype)))
        opened = None  # [b, n, 1]: how much of the shared expert comes through
        if self.shared is not None:
            made = self.shared(of_shared)
            found = _wide(made if self.norms is None else self.norms.shared_output(made))
            opened = None if self.shared_gate is None else torch.sigmoid(self.shared_gate(x))
            out = out + (found if opened is None else _wide(opened) * found)
        if run is not None:
            run.record_routing(f"{name}.feedforward", scores, probabilities, chosen, weights, opened)
        y: Tensor = out.to(x.dtype)  # [b, n, d_model]
        return y

    def read(self, x: Float[Tensor, "*n d_model"]) -> tuple[Float[Tensor, "*n d_model"], ...]:
        """What the router, the experts and the shared expert read of x: x itself, or each through its norm."""
        if self.norms is None:
            return x, x, x
        return self.norms.router(x) * x.shape[-1] ** -0.5, self.norms.experts(x), self.norms.shared(x)

    def choose(self, probabilities: Float[Tensor, "*n n_experts"]) -> tuple[Float[Tensor, "*n k"], Int[Tensor, "*n k"]]:
        """The weights of the chosen experts and their numbers, the most preferred first."""
        chosen = self.preferred(probabilities).topk(self.k, dim=-1).indices
        weights = probabilities.gather(-1, chosen)
        weights = weights / weights.sum(-1, keepdim=True) if self.renormalised else weights
        weights = weights if self.scale == 1 else weights * self.scale
        return (weights if self.expert_scales is None else weights * self.expert_scales[chosen]), chosen

    def preferred(self, probabilities: Float[Tensor, "*n n_experts"]) -> Float[Tensor, "*n n_experts"]:
        """By what experts are chosen: p + c, and -inf outside of the best groups.

        The groups are of n_experts / groups neighbours each; the best are those whose largest p + c, `group_best` of them,
        have the largest sum.
        """
        found = probabilities if self.correction is None else probabilities + self.correction.to(probabilities.dtype)
        if self.groups == 1:
            return found
        apart = found.reshape(*found.shape[:-1], self.groups, -1)  # [*n, groups, n_experts / groups]
        best = (
            apart.topk(self.group_best, dim=-1).values.sum(-1).topk(self.groups_used, dim=-1).indices
        )  # [*n, groups_used]
        left_out = torch.ones_like(apart[..., 0], dtype=torch.bool).scatter(-1, best, value=False)  # [*n, groups]
        kept: Tensor = apart.masked_fill(left_out[..., None], -torch.inf).flatten(-2)
        return kept

    def mix(
        self, x: Float[Tensor, "n d_model"], weights: Float[Tensor, "n k"], chosen: Int[Tensor, "n k"]
    ) -> Float[Tensor, "n d_model"]:
        """sum_{e in T} g_e FFN_e(x): every expert computes the rows of the tokens that chose it, and no others."""
        out = torch.zeros_like(x, dtype=weights.dtype)
        for number in sorted(set(chosen.flatten().tolist())):
            row, place = (chosen == number).nonzero(as_tuple=True)  # the tokens, and which of their choices it is
            weight = weights[row, place, None]  # [rows, 1]
            if self.inputs_weighed:
                found = self.experts[number]((weight * x[row]).to(x.dtype)).to(weights.dtype)  # [rows, d_model]
            else:
                found = weight * self.experts[number](x[row]).to(weights.dtype)
            out = out.index_add(0, row, found)
        return out


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
