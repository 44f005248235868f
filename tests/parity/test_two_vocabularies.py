"""Translators with a vocabulary per language, as people write them around nn.Transformer, against what we open."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests import tiny
from tests.greedy import greedy_steps
from vizformer.checkpoints import Opened, UnansweredError, load
from vizformer.errors import CheckpointError
from vizformer.generation import greedy_batch

SOURCES, TARGETS, D, H, LAYERS, FF, LONGEST = 31, 23, 16, 4, 2, 24, 14
BOS, EOS, PAD = 1, 2, 0
SAID: dict[str, Any] = dict(
    n_heads=H, norm_order="post", activation="relu", scaled_embedding=True, bos_id=BOS, eos_id=EOS
)
IDS, TARGET = [3, 30, 7, 29, 1, 8], [BOS, 5, 22, 4]

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def future(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def waves(n: int) -> Tensor:
    """[n, D], sine and cosine in turn."""
    angles = torch.arange(n)[:, None] * torch.exp(-torch.arange(0, D, 2) * math.log(10_000.0) / D)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class Looked(nn.Module):
    """A table of tokens under the name of its own that the tutorial gives it."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n, D)


class Places(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pos_embedding", waves(50)[:, None])


class Translator(nn.Module):
    """src_tok_emb.embedding, tgt_tok_emb.embedding, positional_encoding.pos_embedding, transformer, generator.

    `names`: of the two tables, where they are others and lie bare; `learned`: tables of positions by such names.
    """

    def __init__(
        self,
        sizes: tuple[int, int] = (SOURCES, TARGETS),
        *,
        names: tuple[str, str] | None = None,
        learned: tuple[str, str] | None = None,
        output: str | None = "generator",
        output_bias: bool = True,
        tied: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        self.transformer = nn.Transformer(D, H, LAYERS, LAYERS + 1, FF, dropout=0.0, batch_first=True, **options)
        tables = [nn.Embedding(n, D) if names else Looked(n) for n in sizes]
        for name, table in zip(names or ("src_tok_emb", "tgt_tok_emb"), tables, strict=True):
            self.add(name, table)
        self.tables = [table.embedding if isinstance(table, Looked) else table for table in tables]
        places = [nn.Embedding(LONGEST, D) for _ in learned or ()]
        for name, place in zip(learned or (), places, strict=True):
            self.add(name, place)
        self.places = places
        if not learned:
            self.positional_encoding = Places()
        self.head = nn.Linear(D, sizes[1], bias=output_bias)
        if output:
            self.add(output, self.head)
        if tied:
            self.head.weight = self.tables[1].weight

    def add(self, name: str, module: nn.Module) -> None:
        """As a module of its own or, with a dot in the name, inside another one."""
        outer, _, inner = name.rpartition(".")
        if outer and outer not in dict(self.named_children()):
            self.add_module(outer, nn.Module())
        (getattr(self, outer) if outer else self).add_module(inner, module)

    def __setattr__(self, name: str, value: Any) -> None:
        """What the forward finds its modules by is no second name of theirs in the state dict."""
        if name in ("tables", "places", "head"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def embed(self, side: int, ids: Tensor) -> Tensor:
        places = self.places[side].weight if self.places else self.positional_encoding.pos_embedding[:, 0]
        return self.tables[side](ids) * math.sqrt(D) + places[: ids.shape[1]]

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        return self.head(self.transformer(self.embed(0, ids), self.embed(1, target), tgt_mask=future(target.shape[1])))


def written(module: Translator, path: Path) -> Path:
    torch.save(tiny.randomise(module).eval().state_dict(), path)
    return path


def assumed(ours: Opened) -> str:
    return " ".join(map(str, ours.report.assumptions)).replace('"', "")


def opened(module: Translator, path: Path, **answers: Any) -> Opened:
    return load(written(module, path), **{**SAID, **answers})


@torch.no_grad()
def agrees(ours: Opened, module: Translator) -> None:
    """Logits, the stream into and out of every layer, and every map that PyTorch's attention returns."""
    sources = [id % module.tables[0].num_embeddings for id in IDS]
    ids, target = torch.tensor([sources]), torch.tensor([TARGET])
    trace = ours.trace(ids=sources, target_ids=TARGET)
    tiny.assert_close(trace.logits, module(ids, target)[0])
    x, y, blocked = module.embed(0, ids), module.embed(1, target), future(len(TARGET))
    for index, layer in enumerate(module.transformer.encoder.layers):
        tiny.assert_close(trace.residual(f"encoder.{index}.pre"), x[0])
        maps = layer.self_attn(x, x, x, average_attn_weights=False)[1]
        for head in range(H):
            tiny.assert_close(trace[f"encoder.{index}.self"].pattern(head), maps[0, head])
        x = layer(x)
    memory = module.transformer.encoder(module.embed(0, ids))
    tiny.assert_close(trace.residual("encoder.final"), memory[0])
    for index, layer in enumerate(module.transformer.decoder.layers):
        after = layer.norm1(y + layer.self_attn(y, y, y, attn_mask=blocked)[0])
        own = layer.self_attn(y, y, y, attn_mask=blocked, average_attn_weights=False)[1]
        maps = layer.multihead_attn(after, memory, memory, average_attn_weights=False)[1]
        for head in range(H):
            tiny.assert_close(trace[f"decoder.{index}.self"].pattern(head), own[0, head])
            tiny.assert_close(trace[f"decoder.{index}.cross"].pattern(head), maps[0, head])
        y = layer(y, memory, tgt_mask=blocked)
        tiny.assert_close(trace.residual(f"decoder.{index}.post"), y[0])


@torch.no_grad()
def greedy(module: Translator, ids: list[int], n: int) -> list[int]:
    """The whole target again for every token, as the tutorial does it."""
    found = [BOS]
    while len(found) <= n and found[-1] != EOS:
        found.append(int(module(torch.tensor([ids]), torch.tensor([found]))[0, -1].argmax()))
    return found[1:]


def test_the_tutorials_translator(tmp_path: Path) -> None:
    module = Translator()
    ours = opened(module, tmp_path / "model.pt")
    config = ours.model.config
    assert (config.source_vocab_size, config.vocab_size, config.max_positions) == (SOURCES, TARGETS, 50)
    assert {tensor.fate for tensor in ours.report.tensors} == {"used", "unused"}
    assert ours.report.parameters["token embedding"] == (SOURCES + TARGETS) * D
    said = assumed(ours)
    assert "src_tok_emb.embedding.weight is the source's table of embeddings and tgt_tok_emb.embedding.weight" in said
    assert "0 to 30 in the source and 0 to 22 in the target" in said
    agrees(ours, module)


def test_twenty_greedy_tokens_with_the_cache(tmp_path: Path) -> None:
    module = tiny.randomise(Translator(norm_first=True)).eval()
    with torch.no_grad():  # each token calls for the one after it, and the end mark never comes first
        module.head.weight.copy_(module.tables[1].weight.roll(1, 0))
        module.head.bias.zero_()[EOS] = -100
        module.transformer.decoder.norm.bias.zero_()
    torch.save(module.state_dict(), tmp_path / "model.pt")
    ours = load(tmp_path / "model.pt", **{**SAID, "norm_order": "pre"})
    expected = greedy(module, IDS, 20)
    assert len(expected) == 20
    assert len(set(expected)) > 5
    assert [step.id for step in greedy_steps(ours.model, IDS, [BOS], max_new=20)] == expected


def test_a_batch_of_sources_is_padded_in_the_sources_own_vocabulary(tmp_path: Path) -> None:
    module = Translator((9, TARGETS))  # the padding of targets is no row of the source's table
    ours = opened(module, tmp_path / "model.pt", pad_id=20)
    sources = [[8, 1, 4, 8, 2], [3], [5, 6]]
    expected = [[id for id in greedy(module, source, 8) if id != EOS] for source in sources]
    assert greedy_batch(ours.model, sources, max_new=8) == expected


@pytest.mark.parametrize(
    ("names", "source", "why"),
    [
        (("encoder_embedding", "decoder_embedding"), 0, "by their names"),
        (("embed_tgt", "embed_src"), 1, "by their names"),
        (("de_emb", "en_emb"), None, "generator.weight has as many rows"),
        (("one_emb", "two_emb"), None, "generator.weight has as many rows"),
        (("src_word_embedding", "trg_word_embedding"), 0, "by their names"),
        (("encoder_decoder.enc_emb", "encoder_decoder.dec_emb"), 0, "by their names"),
        (("token_encoding_emb", "trg_emb"), 0, "by their names"),  # an encoding is no encoder
    ],
)
@pytest.mark.sample(2)
def test_which_table_is_whose(names: tuple[str, str], source: int | None, why: str, tmp_path: Path) -> None:
    sizes = (SOURCES, TARGETS)
    module = Translator(sizes, names=names[::-1] if source == 1 else names)
    ours = opened(module, tmp_path / "model.pt")
    assert why in assumed(ours)
    agrees(ours, module)


def test_an_output_that_is_one_of_the_tables(tmp_path: Path) -> None:
    module = Translator((TARGETS, TARGETS), names=("a_emb", "b_emb"), tied=True)
    ours = opened(module, tmp_path / "model.pt")
    assert ours.model.unembedding is None
    assert ours.model.config.source_vocab_size == TARGETS
    assert "as generator.weight holds the same numbers" in assumed(ours)
    agrees(ours, module)


def test_names_that_cannot_be_asked_about(tmp_path: Path) -> None:
    module = Translator((TARGETS, TARGETS), names=("one_emb", "two emb"))
    with pytest.raises(CheckpointError, match=r"two embedding tables, .*do not say which is the encoder's"):
        opened(module, tmp_path / "model.pt")


@pytest.mark.parametrize("names", [("one_emb", "two_emb"), ("two_emb", "one_emb")])
def test_what_nothing_says_is_asked(names: tuple[str, str], tmp_path: Path) -> None:
    module = Translator((TARGETS, TARGETS), names=names)
    path = written(module, tmp_path / "model.pt")
    with pytest.raises(UnansweredError, match=r"source_embedding \(Which table of embeddings is the source's") as error:
        load(path, n_heads=H, norm_order="post", activation="relu", scaled_embedding=True)
    (question,) = [q for q in error.value.questions if q.name == "source_embedding"]
    assert sorted(map(str, question.choices)) == ["one_emb.weight", "two_emb.weight"]
    ours = opened(module, tmp_path / "model.pt", source_embedding=f"{names[0]}.weight")
    agrees(ours, module)
    swapped = opened(module, tmp_path / "model.pt", source_embedding=f"{names[1]}.weight")
    assert not torch.equal(ours.model.embedding.weight, swapped.model.embedding.weight)


def test_the_same_table_twice_is_one(tmp_path: Path) -> None:
    module = Translator((TARGETS, TARGETS))
    module.tgt_tok_emb.embedding.weight = module.src_tok_emb.embedding.weight
    ours = opened(module, tmp_path / "model.pt")
    assert ours.model.config.source_vocab_size is None
    ids = [3, 22, 7]
    with torch.no_grad():
        expected = module(torch.tensor([ids]), torch.tensor([TARGET]))
    tiny.assert_close(ours.trace(ids=ids, target_ids=TARGET).logits, expected[0])


@pytest.mark.parametrize("prefix", ["", "module.", "model."])
def test_under_a_wrapper(prefix: str, tmp_path: Path) -> None:
    module = tiny.randomise(Translator()).eval()
    torch.save({f"{prefix}{name}": tensor for name, tensor in module.state_dict().items()}, tmp_path / "model.pt")
    ours = load(tmp_path / "model.pt", n_heads=H, norm_order="post", activation="relu", scaled_embedding=True)
    agrees(ours, module)


# --- positions of each side ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("src_position_embedding", "trg_position_embedding"), ("decoder_pos", "encoder_pos")]
)
def test_a_table_of_positions_for_each_stack(names: tuple[str, str], tmp_path: Path) -> None:
    ordered = names if "src" in names[0] else names[::-1]
    module = Translator(learned=ordered)
    ours = opened(module, tmp_path / "model.pt")
    assert ours.model.config.stack_inputs == "own"
    assert ours.model.config.max_positions == LONGEST
    assert f"a row of {ordered[0]}.weight for each position is added to the embeddings of the source" in assumed(ours)
    agrees(ours, module)


def test_positions_that_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"two position tables, .*pos_a.weight.*their names say which is"):
        opened(Translator(learned=("pos_a", "pos_b")), tmp_path / "model.pt")


def test_sine_waves_on_either_side(tmp_path: Path) -> None:
    module = tiny.randomise(Translator()).eval()
    state = module.state_dict()
    pe = state.pop("positional_encoding.pos_embedding")
    state |= {"encoder.pos.pe": pe, "decoder.pos.pe": pe[:40]}
    torch.save(state, tmp_path / "model.pt")
    ours = load(tmp_path / "model.pt", n_heads=H, norm_order="post", activation="relu", scaled_embedding=True)
    assert (ours.model.config.positions, ours.model.config.max_positions) == ("sinusoidal", 40)
    agrees(ours, module)


# --- what does not open --------------------------------------------------------------------------------------------


def test_three_tables(tmp_path: Path) -> None:
    module = Translator()
    module.third_tok_emb = nn.Embedding(7, D)
    with pytest.raises(CheckpointError, match=r"several embedding tables, .*or one for each of the two"):
        opened(module, tmp_path / "model.pt")


def test_a_decoder_without_what_it_reads(tmp_path: Path) -> None:
    layer = nn.TransformerDecoderLayer(D, H, FF, batch_first=True)
    modules = nn.ModuleDict(dict(decoder=nn.TransformerDecoder(layer, LAYERS), tok_emb=nn.Embedding(TARGETS, D)))
    torch.save(modules.state_dict(), tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match="an arrangement that does not open"):
        load(tmp_path / "model.pt", n_heads=H)
