"""Tokens, heads and networks as a graph whose edges carry the answer, and what is left of it without each edge."""

import vizformer as vf

checkpoint = vf.load("zh-en")  # an encoder-decoder that translates Chinese into English
trace = checkpoint.trace("我有一只猫。")
position = [token.text for token in trace.tokens["decoder"]].index("a")  # what is written after “a”
answer = int(trace.logits[position].argmax())
print(checkpoint.tokenizer.tokens([answer])[0].text)

# %% The graph: each edge has its exact share of the logit, and is taken out of a run

found = vf.analysis.answer_evidence(checkpoint, trace, position, answer)
print(f"all terms sum to the logit but for {found.proof.difference:.0e}")
found.to_frame(vf.analysis.taken_out(checkpoint, trace, found))

# %% From which layer on is it the answer?

lens = vf.analysis.logit_lens(checkpoint, trace, [position])
lens.to_frame()

# %% Which tokens of the input add to it, by gradients along the way from an input that says nothing

vf.analysis.input_attribution(checkpoint, trace, position, answer).to_frame()
