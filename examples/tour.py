"""The library that the pages use: a model, a sentence, and every number between them.

    pip install "vizformer[notebook]"        # nothing is fetched after that: the models come along

The pictures need neither a server nor a network.
"""

import vizformer as vf

checkpoint = vf.load("zh-en")  # an encoder-decoder that translates Chinese into English
trace = checkpoint.trace("我有一只猫。")
print([token.text for token in trace.tokens["encoder"]])
print([token.text for token in trace.tokens["decoder"]])

# %% All heads of the cross-attention: click one

shown = vf.view(trace, kind="cross")
shown

# %% One layer, as lines between the words

vf.view(trace["encoder.0.self"], picture="lines")

# %% The numbers of the head that you pressed

record = trace[f"decoder.{shown.layer}.cross"]
weights = record.pattern(head=shown.head)
print(weights.shape, weights.sum(-1))

# %% How one of them was computed, step by step, each with its proof

for step in vf.explain.attention_steps(checkpoint, trace, "decoder.2.cross", head=0, query=1):
    print(step.title, "" if step.proof is None else f"(differs from the model by {step.proof.difference:.1e})")

# %% Another sentence is continued

stories = vf.load("stories")
print(stories.generate("Once upon a time").text)
vf.view(stories.trace("Once upon a time there was a cat."))
