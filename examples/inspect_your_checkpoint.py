"""What is in a folder or a file of weights, and does it compute what its own program computes?

Put the path of your model in the place of the one below: a folder of `transformers`, a .safetensors file, a state dict.
"""

import torch

import vizformer as vf
from vizformer.assets import asset
from vizformer.checkpoints import describe, inspect

PATH = asset("models") / "stories"

# %% What becomes of each tensor, and what was assumed

report = inspect(PATH)
print(describe(report))

# %% It opens

checkpoint = vf.load(PATH)
print(checkpoint.model.config)

# %% A forward with its trace, in token ids: a tokenizer is not needed

trace = checkpoint.trace(ids=[5, 6, 7, 5, 6, 7])
print(trace.sites)
assert torch.isfinite(trace.logits).all()

# %% Every head of every layer

vf.view(trace)

# %% Which heads copy what came before? Where a sequence repeats, an induction head looks one past the last time

for site in trace.sites:
    record = trace[site]
    after_the_last_time = [float(record.pattern(head)[3:, 1:4].diagonal().mean()) for head in range(record.n_heads)]
    print(site, [round(weight, 2) for weight in after_the_last_time])
