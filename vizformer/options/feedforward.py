"""The station of the feed-forward: one network in every layer, or several of which a router chooses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import N_, Message, ranges
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import Count, Layers, Numbers, Positive, are_layers

Activation = Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "relu_squared"]
FeedForwardKind = Literal["plain", "gated"]
ExpertWeights = Literal["renormalised", "probabilities"]
RouterScores = Literal["softmax", "sigmoid"]

ACTIVATION_NAMES = {
    "relu": "ReLU",
    "relu_squared": "ReLU²",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "quick_gelu": "QuickGELU",
    "silu": "SiLU",
}
"""As they are written in formulas, whichever way GELU is computed."""


@dataclass(frozen=True, kw_only=True)
class FeedForwardOptions(CommonOptions):
    """What every position goes through by itself.

    Attributes:
        activation: of the feed-forward layer; "relu_squared" is max(0, x)^2 (So et al. 2021, "Primer"), "gelu_tanh" GPT-2's
            approximation of GELU, "quick_gelu" that by a sigmoid (CLIP).
        feedforward: "plain" act(x W_in) W_out, or "gated" (act(x W_gate) * x W_in) W_out; gated with "silu" is SwiGLU
            (Shazeer 2020).
        shared_kv_d_ff: width of the hidden layer where a layer reads the keys and values of an earlier one (Gemma 4); None:
            d_ff.
        gate_limit: of a gated network, no number of the gate goes above it, none of x W_in beyond it on either side, and 1
            is added to the latter (gpt-oss); None: neither.
        gate_sparsity: of a gated network, for each layer the share of gates that would be shut if they were spread like a
            bell: what is below such a cutoff counts as nothing, what is above it as its distance from it; 0: no cutoff
            (`vizformer.model.feedforward`; Gemma 3n); None: no layer has one.
        n_experts: how many feed-forward networks a layer has, of which each token goes through a few, chosen by a router
            (mixture of experts: Shazeer et al. 2017, "Outrageously Large Neural Networks"; Mixtral); None: one, for all.
        experts_per_token: through how many of them.
        expert_weights: by what the outputs of the chosen ones are multiplied before they are summed: the router's
            "probabilities" of them, or those "renormalised" to the sum 1 (Jiang et al. 2024, "Mixtral of Experts", 2.1).
        router_bias: whether the router adds a number of its own to the score of each expert (gpt-oss).
        router_scores: what makes probabilities of the scores: a "softmax" over all experts, or for each expert by itself a
            "sigmoid" (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", 2.1.2).
        router_correction: whether a number for each expert is added to its probability where experts are chosen, and not
            where they are weighed: it keeps all of them busy in training (Wang et al. 2024, "Auxiliary-Loss-Free Load
            Balancing Strategy for Mixture-of-Experts").
        router_groups, router_groups_used: experts are chosen from the groups used alone, of groups of neighbouring numbers
            those whose best experts have the largest sum; 1 and 1: from all.
        router_group_best: how many experts of a group are summed so: 2 (DeepSeek-V3), or 1 (DeepSeek-V2).
        expert_scale: by what the weights are multiplied, last.
        expert_inputs_weighed: whether what goes into the chosen experts is multiplied by their weights, and what comes
            out is summed as it is (Llama 4).
        d_expert: width of an expert's hidden layer; None: d_ff.
        d_shared_expert: width of one more network beside the experts, which all tokens go through; what it makes is
            multiplied by a number between 0 and 1, for each token another (Qwen2-MoE); None: there is none.
        shared_expert_gate: whether it is multiplied so; otherwise it is added as it is (DeepSeek).
        expert_norms: whether router, experts and shared expert each read the stream by a norm of their own, what these two
            make is normalised before the sum, and the weight of each expert is multiplied by a number of its own (Gemma 4).
        expert_layers: the layers that have experts, counted from 0, in order; the others have one network of width d_ff;
            None: all.
    """

    activation: Activation = "relu"
    feedforward: FeedForwardKind = "plain"
    shared_kv_d_ff: Count | None = None
    gate_limit: Positive | None = None
    gate_sparsity: Numbers | None = None
    n_experts: Count | None = None
    experts_per_token: Count = 2
    expert_weights: ExpertWeights = "renormalised"
    router_bias: bool = False
    router_scores: RouterScores = "softmax"
    router_correction: bool = False
    router_groups: Count = 1
    router_groups_used: Count = 1
    router_group_best: Count = 2
    expert_scale: Positive = 1.0
    expert_inputs_weighed: bool = False
    d_expert: Count | None = None
    d_shared_expert: Count | None = None
    shared_expert_gate: bool = True
    expert_norms: bool = False
    expert_layers: Layers | None = None

    def sparsity_of(self, layer: int) -> float:
        """The share of gates that the cutoff of a layer is meant to shut; 0 where there is none."""
        return 0.0 if self.gate_sparsity is None else self.gate_sparsity[layer]

    def has_experts(self, layer: int) -> bool:
        """Whether the feed-forward of this layer (of either stack) is a mixture of experts."""
        return self.n_experts is not None and (self.expert_layers is None or layer in self.expert_layers)

    @property
    def expert_width(self) -> int:
        """Width of an expert's hidden layer: d_expert, or d_ff."""
        return self.d_ff if self.d_expert is None else self.d_expert

    @property
    def n_expert_layers(self) -> int:
        """How many layers have experts."""
        return sum(self.has_experts(i) for n in (self.n_encoder_layers, self.n_decoder_layers) for i in range(n))

    @property
    def active_d_ff(self) -> int:
        """Numbers of the hidden layers that a token goes through in one layer: d_ff or, where that has experts, those of the
        chosen ones and of the shared one together."""
        if self.n_experts is None:
            return self.d_ff
        return self.experts_per_token * self.expert_width + (self.d_shared_expert or 0)

    @property
    def network_matrices(self) -> int:
        """Matrices of one feed-forward network: W_in and W_out, with a gate W_gate too."""
        return 3 if self.feedforward == "gated" else 2

    def network_parameters(self, width: int) -> int:
        """Parameters of one feed-forward network: 2 d width + width + d, or 3 d width (+ 2 width + d) with a gate."""
        matrices = self.network_matrices
        return matrices * self.d_model * width + ((matrices - 1) * width + self.d_model if self.bias else 0)

    @property
    def idle_parameters(self) -> int:
        """Parameters of the experts that a token does not go through, in all layers together; 0 without experts."""
        idle = (self.n_experts or 0) - self.experts_per_token
        return self.n_expert_layers * idle * self.network_parameters(self.expert_width)

    def rules(self) -> Iterator[Message]:
        if self.gate_limit is not None and self.feedforward != "gated":
            yield N_(
                "gate_limit={value}: this is an option of feedforward='gated', leave it out", value=self.gate_limit
            )
        if self.gate_sparsity is not None and (
            self.feedforward != "gated"
            or self.architecture == "encoder-decoder"
            or self.gate_limit is not None
            or self.n_experts is not None
            or len(self.gate_sparsity) != self.depth
            or not all(0 <= one < 1 for one in self.gate_sparsity)
        ):
            yield N_(
                "gate_sparsity={value}: must be a number from 0 to below 1 for each of {n} layers, of one stack alone with "
                "feedforward='gated', without gate_limit and experts",
                value=str(list(self.gate_sparsity)),
                n=self.depth,
            )
        if self.n_experts is None:
            for name in ("d_expert", "d_shared_expert", "expert_layers"):
                if getattr(self, name) is not None:
                    yield N_("{name} without n_experts: give both, or leave it out", name=name)
            return
        if self.experts_per_token > self.n_experts:
            yield N_(
                "experts_per_token={value}: must not be above n_experts={n_experts}",
                value=self.experts_per_token,
                n_experts=self.n_experts,
            )
        size, over = divmod(self.n_experts, self.router_groups)
        if self.router_groups > 1 and (over or size < self.router_group_best):
            yield N_(
                "router_groups={value}: n_experts={n_experts} must make groups of one size, of at least {least} experts",
                value=self.router_groups,
                n_experts=self.n_experts,
                least=self.router_group_best,
            )
        elif (
            not self.router_groups_used <= self.router_groups or self.experts_per_token > self.router_groups_used * size
        ):
            yield N_(
                "router_groups_used={value}: must not be above router_groups={groups}, and these groups must have at least "
                "experts_per_token={k} experts",
                value=self.router_groups_used,
                groups=self.router_groups,
                k=self.experts_per_token,
            )
        if self.expert_layers is not None:
            if self.architecture == "encoder-decoder":
                yield N_("expert_layers: only one stack alone has such layers, leave it out")
            elif not are_layers(self.expert_layers, self.depth):
                yield N_(
                    "expert_layers={value}: must be numbers of layers in order, from 0 to {last}; leave it out where all "
                    "have experts, and n_experts where none has",
                    value=str(list(self.expert_layers)),
                    last=self.depth - 1,
                )

    def details(self) -> Iterator[Message]:
        if self.gate_limit is not None:
            yield N_(
                "gates are cut off at {limit}, what they multiply at ±{limit}, and 1 is added to the latter",
                limit=f"{self.gate_limit:g}",
            )
        if self.gate_sparsity is not None:
            yield N_(
                "gates below a cutoff are shut (layers: {layers})",
                layers=ranges(layer for layer, share in enumerate(self.gate_sparsity) if share > 0),
            )
        if self.shared_kv_d_ff is not None:
            yield N_(
                "the feed-forward is {width} wide where keys and values are those of an earlier layer",
                width=f"{self.shared_kv_d_ff:,}",
            )
        if self.n_experts is not None:
            yield N_(
                "mixture of experts (layers: {layers}): each token goes through {k} of {n} feed-forward networks of width "
                "{width}",
                layers=ranges(range(self.depth) if self.expert_layers is None else self.expert_layers),
                k=self.experts_per_token,
                n=self.n_experts,
                width=f"{self.expert_width:,}",
            )
        if self.n_experts is not None and self.router_scores == "sigmoid":
            yield N_("the router scores each expert by itself, by a sigmoid")
        if self.router_correction:
            yield N_("a number for each expert is added where experts are chosen, and not where they are weighed")
        if self.router_groups > 1:
            yield N_(
                "experts are chosen from {k} of {n} groups for each token",
                k=self.router_groups_used,
                n=self.router_groups,
            )
        if self.d_shared_expert is not None:
            yield N_("all tokens go through a shared expert of width {width}", width=f"{self.d_shared_expert:,}")
        if self.expert_norms:
            yield N_(
                "router, experts and shared expert have norms of their own; a number of each expert multiplies its weight"
            )
        if self.n_experts is not None and self.expert_weights == "probabilities":
            yield N_("the weights of the chosen experts are not brought to the sum 1")
        if self.expert_inputs_weighed:
            yield N_("what goes into an expert is multiplied by its weight, not what comes out")
        if self.idle_parameters > 0:
            yield N_("{n} parameters belong to experts that a token does not go through", n=f"{self.idle_parameters:,}")

    def without_meaning(self) -> Iterator[str]:
        if self.n_experts is None:
            yield from ("experts_per_token", "expert_weights", "expert_scale", "expert_inputs_weighed", "expert_norms")
            yield from (name for name in FeedForwardOptions.__annotations__ if name.startswith("router_"))
        if self.d_shared_expert is None:
            yield "shared_expert_gate"
