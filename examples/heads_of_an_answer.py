"""Two answers that often differ: what each head writes towards the answer, and what becomes of the answer without it.

Every result is an object with its numbers, its proof and a table, `.to_frame()`.
"""

import vizformer as vf

checkpoint = vf.load("stories")  # bundled; your own: a folder, a file or a Hugging Face id
trace = checkpoint.trace("The queen lost")  # or checkpoint.trace(ids=[...])
answer = int(trace.logits[-1].argmax())
print(checkpoint.tokenizer.tokens([answer])[0].text, f"{trace.logits[-1].softmax(-1)[answer]:.1%}")

# %% What each head writes: the logit, less the mean logit of all tokens, is the sum of these terms

terms = vf.analysis.logit_attribution(checkpoint, trace, -1, answer)
print(terms.total, terms.logit)
terms.to_frame()

# %% What becomes of the answer without each head: all that comes after it is computed anew

heads = [part for part in vf.analysis.parts_of(trace) if part.head is not None]
effects = vf.analysis.ablation_sweep(checkpoint, trace, -1, answer, parts=heads)
effects.to_frame()

# %% Both effects on the logit: where they differ, later parts make up for a head, or it works through others

both = effects.to_frame().merge(terms.to_frame(), on=["place", "head"])
both.assign(direct=both["value"], total=-both["logit"])[["place", "head", "direct", "total"]]
