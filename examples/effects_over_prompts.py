"""What is true of one prompt may be false of the next: means over a set, their intervals, and what goes against them."""

import vizformer as vf

checkpoint = vf.load("stories")
print(vf.analysis.bundled_sets(checkpoint))  # that come along and that this model can do: bundled_set(name)
# %% A set of your own: a table in CSV or JSON (with `Path`), or a template with words

prompts = vf.analysis.read_prompt_set("""
clean: The {man} lost
corrupted: The {woman} lost
answer: his
wrong: her
man: boy, king, father
woman: girl, queen
""")
print(len(prompts.rows), prompts.rows[0])

# %% What each head brings back of the clean answer, when it is put into the run of the corrupted prompt

trace = checkpoint.trace(prompts.rows[0].clean)
heads = [part for part in vf.analysis.parts_of(trace) if part.head is not None]
patched = vf.analysis.over_prompts(checkpoint, prompts, "patching", parts=heads)
patched.to_frame()

# %% Does it hold? The prompts whose effect has another sign than the mean

strongest = patched.strongest()[0]
print(patched.parts[strongest], f"goes against its mean in {len(patched.against(strongest))} of {len(patched.rows)}")
patched.rows_to_frame()

# %% Another measure, another question: without a head, how much of the answer is left?

vf.analysis.over_prompts(checkpoint, prompts, "zero", parts=heads).to_frame()
