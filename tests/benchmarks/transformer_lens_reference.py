"""What the analysis says of heads, beside what TransformerLens says of them.

    python -m venv /tmp/lens                                            # its requirements are not those of the tests
    /tmp/lens/bin/pip install -c constraints.txt -e . transformer-lens
    /tmp/lens/bin/python -m tests.benchmarks.transformer_lens_reference

Two models are opened by both: a GPT-2 of random weights (3 layers of 4 heads, LayerNorm, biases) and the bundled `stories`
(rotary positions, RMSNorm, shared keys and values), each written as a Hugging Face folder.  The prompts of the patches are
"The boy said that" (clean) and "The girl said that".  A row of the table is one measure of all heads, layers or positions;
the command ends with exit code 1 where two numbers differ by more than LIMIT times the largest of their row.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

import vizformer as vf
from vizformer import analysis
from vizformer.analysis.causes.ablation import Part, sweep
from vizformer.analysis.circuits.composition import WAYS, compositions
from vizformer.analysis.circuits.token_circuits import copying_scores
from vizformer.checkpoints import Checkpoint, save

CLEAN, CORRUPTED = "The boy said that", "The girl said that"
PERIOD = 12  # of the repeated random tokens
LIMIT = 1e-4
Row = tuple[str, ndarray, ndarray]  # the measure, ours, theirs


def folders(place: Path) -> Iterator[Path]:
    """The two models, as `transformers` reads them."""
    from transformers import GPT2Config, GPT2LMHeadModel

    stories = vf.load("stories")
    save(stories, place / "stories", torch.float32, layout="hugging-face")
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=stories.model.config.vocab_size,
        n_embd=64,
        n_layer=3,
        n_head=4,
        n_positions=128,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():  # larger than they are made: the heads are to differ clearly
            parameter.add_(torch.randn_like(parameter) * 0.15)
    model.save_pretrained(place / "gpt2")
    for file in (place / "stories").glob("tokenizer*"):
        (place / "gpt2" / file.name).write_bytes(file.read_bytes())
    yield place / "gpt2"
    yield place / "stories"


def bridge(folder: Path, **processing: bool) -> Any:
    """The folder in TransformerLens."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    made = TransformerBridge.boot_transformers(str(folder), hf_model=model.eval(), tokenizer=tokenizer)
    made.enable_compatibility_mode(disable_warnings=True, fold_value_biases=False, **processing)
    return made


def of_the_forward(ours: Checkpoint, theirs: Any) -> Iterator[Row]:
    """Numbers of one run, of runs without a head, and of runs with numbers of another one."""
    from transformer_lens import patching

    layers, heads = ours.model.config.n_decoder_layers, ours.model.config.n_heads
    clean, corrupted = (ours.trace(text) for text in (CLEAN, CORRUPTED))
    ids, other_ids = (torch.tensor([[token.id for token in run.tokens["decoder"]]]) for run in (clean, corrupted))
    logits, cache = theirs.run_with_cache(ids)
    patterns = [cache["pattern", layer][0] for layer in range(layers)]
    stream = [cache["resid_post", layer][0] for layer in range(layers)]
    yield "logits", array(clean.logits), array(logits[0])
    yield "weights of all heads", analysis.head_maps(clean, "decoder").weights, array(torch.stack(patterns))
    own_stream = [clean.residual(f"decoder.{layer}.post") for layer in range(layers)]
    yield "residual stream", array(torch.stack(own_stream)), array(torch.stack(stream))

    lens = torch.log_softmax((cache.accumulated_resid(-1, apply_ln=True)[:, 0] @ theirs.W_U + theirs.b_U).double(), -1)
    yield "logit lens, entropy", analysis.logit_lens(ours, clean).entropy, array(-(lens.exp() * lens).sum(-1))

    row, token = len(clean.logits) - 1, int(clean.logits[-1].argmax())
    parts = [Part(f"decoder.{layer}.self", head) for layer in range(layers) for head in range(heads)]
    without = np.array([effect.logit for effect in sweep(ours, clean, row, token, parts=parts)])

    def silent(z: Tensor, hook: object, head: int) -> Tensor:
        return z.index_fill(2, torch.tensor([head]), 0.0)

    changes = [
        theirs.run_with_hooks(ids, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", partial(silent, head=head))])
        for layer in range(layers)
        for head in range(heads)
    ]
    yield (
        "a head taken out, change of the logit",
        without,
        array(torch.stack(changes)[:, 0, row, token] - logits[0, row, token]),
    )

    best = [int(id) for id in corrupted.logits[-1].topk(2).indices]
    other = next(id for id in best if id != token)
    pair = analysis.prompt_pair(ours, CLEAN, CORRUPTED, answer=token, other=other)
    low, high = (float(array(run[0, row, token] - run[0, row, other])) for run in (theirs(other_ids), logits))

    def recovered(run: Tensor) -> Tensor:
        return ((run[0, row, token] - run[0, row, other]) - low) / (high - low)

    theirs_by_what: dict[str, Callable[..., Tensor]] = {
        "stream": patching.get_act_patch_resid_pre,
        "heads": patching.get_act_patch_attn_head_out_all_pos,
        "heads_by_position": patching.get_act_patch_attn_head_out_by_pos,
        "patterns": patching.get_act_patch_attn_head_pattern_all_pos,
    }
    for what, patch in theirs_by_what.items():
        own = analysis.patch_runs(ours, pair, what, "decoder").recovered  # type: ignore[arg-type]
        found = array(patch(theirs, other_ids, cache, recovered))
        if what == "stream":
            own = own[:layers]  # theirs has no point after the last layer
        yield f"patched: {what}", own, found.swapaxes(1, 2) if what == "heads_by_position" else found


def of_one_logit(ours: Checkpoint, theirs: Any) -> Iterator[Row]:
    """`theirs` with all norms folded: their terms are products with the unembedding alone."""
    layers, heads = ours.model.config.n_decoder_layers, ours.model.config.n_heads
    run = ours.trace(CLEAN)
    token, other = (int(id) for id in run.logits[-1].topk(2).indices)
    own = analysis.logit_attribution(ours, run, len(run.logits) - 1, token, against=other).heads()
    __, cache = theirs.run_with_cache(torch.tensor([[token.id for token in run.tokens["decoder"]]]))
    results = cache.stack_head_results(layer=-1, pos_slice=-1)
    difference = dict(tokens=torch.tensor([token]), incorrect_tokens=torch.tensor([other]))
    terms = cache.logit_attrs(results, pos_slice=-1, **difference)
    yield "direct attribution of heads to a logit", own, array(terms).reshape(layers, heads)


def of_repeated_tokens(ours: Checkpoint, theirs: Any) -> Iterator[Row]:
    config = ours.model.config
    layers, heads = config.n_decoder_layers, config.n_heads
    ids = analysis.repeated_tokens(torch.arange(5, config.vocab_size), sequences=4, period=PERIOD)
    __, cache = theirs.run_with_cache(ids)
    patterns = torch.stack([cache["pattern", layer] for layer in range(layers)])  # [layers, b, heads, n, n]
    scores = analysis.head_scores(ours.model, ids, PERIOD)
    before = patterns.diagonal(-1, -2, -1).mean((1, 3))
    followed = patterns.diagonal(1 - PERIOD, -2, -1)[..., 1:].mean((1, 3))
    assert before.shape == (layers, heads)
    yield "previous-token score", scores.previous_token, array(before)
    yield "induction score", scores.induction, array(followed)


def of_the_weights(ours: Checkpoint, theirs: Any) -> Iterator[Row]:
    """`theirs` with the norms folded into what reads, and nothing else changed."""
    from transformer_lens import FactoredMatrix

    found = compositions(ours)
    for way in WAYS:
        own = found.scores[way]
        scores = array(theirs.all_composition_scores(way).scores).reshape(own.shape)
        yield f"{way}-composition", np.nan_to_num(own), scores
    layers, heads = ours.model.config.n_decoder_layers, ours.model.config.n_heads
    copied = np.zeros((layers, heads))
    for layer, head in np.ndindex(layers, heads):
        OV = theirs.OV.A[layer, head].double() @ theirs.OV.B[layer, head].double()
        values = FactoredMatrix(theirs.W_E.double(), OV @ theirs.W_U.double()).eigenvalues
        copied[layer, head] = float((values.sum() / values.abs().sum()).real)
    yield "copying score", copying_scores(ours), copied


def array(values: Tensor) -> ndarray:
    kept: ndarray = values.detach().double().numpy()
    return kept


def rows(folder: Path) -> Iterator[Row]:
    ours = vf.load(folder)
    as_it_is = bridge(folder, no_processing=True)
    yield from of_the_forward(ours, as_it_is)
    yield from of_repeated_tokens(ours, as_it_is)
    yield from of_one_logit(ours, bridge(folder))
    yield from of_the_weights(ours, bridge(folder, fold_ln=True, center_writing_weights=False, center_unembed=False))


@click.command(help=__doc__)
def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    wrong = 0
    with (
        tempfile.TemporaryDirectory() as place,
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stderr(nowhere),  # their progress bars
    ):
        for folder in folders(Path(place)):
            print(f"\n| {folder.name} | numbers | largest | largest difference |\n| :--- | ---: | ---: | ---: |")
            for name, ours, theirs in rows(folder):
                assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
                largest, difference = np.abs(theirs).max(), np.abs(ours - theirs).max()
                wrong += not difference <= LIMIT * largest
                print(f"| {name} | {ours.size:,} | {largest:.3g} | {difference:.1e} |")
    print(f"\n{wrong} rows differ." if wrong else "\nEvery row agrees.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
