"""A head looks from one token at another since their rows hold what earlier parts have written there.

The score of the two is a sum over pairs of these writers, which is held against the model's own score.
"""

import vizformer as vf

checkpoint = vf.load("stories")
trace = checkpoint.trace("Tom had a dog. The dog was")
tokens = trace.tokens["decoder"]

# %% Where a head of the last layer looks from the last token

site, head, query = "decoder.3.self", 0, len(tokens) - 1
weights = trace[site].pattern(head)[query]
key = int(weights[1:].argmax()) + 1  # beside the start mark
print(f"“{tokens[query].text}” gives {weights[key]:.0%} to “{tokens[key].text}”")

# %% Why there: what wrote into the query, what wrote into the key, and the share of the score of each pair

split = vf.analysis.score_split(checkpoint, trace, site, head, query, key, against_mean=True)
print(f"they sum to the model's own score but for {split.proof.difference:.0e}")
split.to_frame()

# %% A writer that is a head took it from tokens, too

writer = next(a for a, _, _ in split.ranked if a.head is not None)
shares = vf.analysis.writer_tokens(checkpoint, trace, split, "query", writer)
print(writer.place, writer.head, dict(zip([token.text for token in tokens], shares.round(3).tolist(), strict=True)))

# %% The test of it: without this writer, where does the head look?

without = vf.analysis.without(checkpoint, trace, [vf.analysis.Part(writer.place, writer.head)])
print(f"{weights[key]:.0%} becomes {without[site].pattern(head)[query, key]:.0%}")

# %% And what does the head do to the logits of what it looks at?

role = vf.analysis.signed_role(checkpoint, [trace], site, head)
print(role.role or "no clear role", f"{role.mean:+.2f}")
role.to_frame()
