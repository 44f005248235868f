"""The end of the path: a Transformer made of a student's functions, with the weights of the bundled translator."""

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vizformer.analysis import Kind
from vizformer.exercises.task import MODEL, SENTENCE, Function, Kept, below, bundled_reading
from vizformer.messages import N_
from vizformer.web.link.languages import SOURCE, render

if TYPE_CHECKING:
    from vizformer.attention_view import AttentionView, AttentionViews, StreamView

LONGEST = 60  # tokens that are written at most


@dataclass(frozen=True, repr=False)
class OwnTranslation:
    """What a student's Transformer made of a sentence.

    Attributes:
        text, ids: the translation, with its end mark where there is one.
        tokens: of the encoder and of the decoder, as they are shown.
        maps: her attention weights by kind, "encoder", "decoder" and "cross": [layers, heads, queries, keys].
        difference: the largest |her logit - the model's|, both reading what she wrote.
    """

    text: str
    ids: tuple[int, ...]
    tokens: dict[str, tuple[str, ...]]
    maps: dict[Kind, Tensor]
    expected: str
    difference: float
    language: str = SOURCE

    def view(self, kind: Kind = "cross") -> "AttentionView | AttentionViews | StreamView":
        """Her maps, as `vf.view` shows them."""
        import vizformer  # by its public name, as a trace does: this room knows nothing of pictures

        queries = self.tokens["encoder" if kind == "encoder" else "decoder"]
        keys = self.tokens["encoder"] if kind == "cross" else ()
        return vizformer.view(self.maps[kind], queries, key_tokens=keys, first_axis="layers")

    def __repr__(self) -> str:
        about: dict[str, object] = dict(model=MODEL, text=self.expected, difference=f"{self.difference:.1e}")
        if self.text == self.expected:
            said = N_("{model} writes the same; the logits differ by at most {difference}.", **about)
        else:
            said = N_("{model} writes: {text} The logits differ by up to {difference}.", **about)
        return f"{self.text}\n{render(said, self.language)}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)).replace(chr(10), '<br>')}</p>{self.view()._repr_html_()}"


@dataclass(frozen=True)
class OwnTransformer:
    """Four functions of a student's, which use her others, as one Transformer (Vaswani et al. 2017, figure 1).

        x = E[ids] √d_model + positional_encoding(n, d_model);  x = layer(x), layer by layer;  logits = x Eᵀ

    The weights and their sizes are those of the bundled model.
    """

    positional_encoding: Function
    encoder_layer: Function
    decoder_layer: Function
    beam_search: Function
    language: str = SOURCE

    @torch.no_grad()
    def translate(self, text: str = SENTENCE, width: int = 1) -> OwnTranslation:
        """Translates with her search; width 1 is greedy.

        Raises:
            TraceError: a sentence that the model cannot read; what her functions raise.
        """
        reading = bundled_reading(text)
        checkpoint, source = reading.checkpoint, reading.trace.tokens["encoder"]
        config, w = checkpoint.model.config, checkpoint.model.state_dict()
        encoder_maps, memory = self.encode(torch.tensor([token.id for token in source]), w, config.n_heads)
        *marks, start = config.start_ids  # of a model that is told a language, one more before the start mark

        def step(new: Tensor, cache: Kept | None) -> tuple[Tensor, Kept]:
            rows = torch.tensor([marks] * len(new), dtype=torch.long) if cache is None else cache[0]
            rows = torch.cat([rows, new], dim=1)  # her layers keep no keys and values: they compute all tokens anew
            return torch.stack([self.decode(row, memory, w, config.n_heads)[2][-1] for row in rows]), [rows]

        ids, _ = self.beam_search(step, start, config.eos_id, width, LONGEST)
        said = [one for one in ids if one != config.eos_id]
        read = [*config.start_ids, *said]
        own, cross, logits = self.decode(torch.tensor(read), memory, w, config.n_heads)
        trace = checkpoint.trace(text, target_ids=read)
        shown = {stack: tuple(token.text for token in tokens) for stack, tokens in trace.tokens.items()}
        return OwnTranslation(
            checkpoint.tokenizer.decode(said).strip(),
            tuple(ids),
            shown,
            {"encoder": encoder_maps, "decoder": own, "cross": cross},
            checkpoint.generate(text).text,
            float((logits - trace.logits).abs().max()),
            self.language,
        )

    def embed(self, ids: Tensor, w: dict[str, Tensor]) -> Tensor:
        """[n] ids to [n, d_model]: rows of the table times √d_model, plus her positions."""
        x = w["embedding.weight"][ids]
        P: Tensor = self.positional_encoding(*x.shape)
        return x * math.sqrt(x.shape[1]) + P

    def encode(self, ids: Tensor, w: dict[str, Tensor], n_heads: int) -> tuple[Tensor, Tensor]:
        """The maps of all layers, and the encoder's output."""
        x, maps = self.embed(ids, w), []
        for layer in _layers(w, "encoder"):
            weights, x = self.encoder_layer(x, layer, n_heads)
            maps.append(weights)
        return torch.stack(maps), x

    def decode(self, ids: Tensor, memory: Tensor, w: dict[str, Tensor], n_heads: int) -> tuple[Tensor, Tensor, Tensor]:
        """The maps of both attentions of all layers, and the logits."""
        x, maps = self.embed(ids, w), []
        for layer in _layers(w, "decoder"):
            own, cross, x = self.decoder_layer(x, memory, layer, n_heads)
            maps.append((own, cross))
        own_maps, cross_maps = (torch.stack(one) for one in zip(*maps, strict=True))
        return own_maps, cross_maps, x @ w["embedding.weight"].T


def _layers(w: dict[str, Tensor], stack: str) -> list[dict[str, Tensor]]:
    """The weights of each layer of a stack."""
    n_layers = len({name.split(".")[2] for name in w if name.startswith(f"{stack}.layers.")})
    return [below(w, f"{stack}.layers.{layer}.") for layer in range(n_layers)]
