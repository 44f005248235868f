"""The edges between heads and networks that carry a task, and how well the model answers with these alone."""

import vizformer as vf

checkpoint = vf.load("induction-by-hand")  # its weights were set by hand, so that the circuit is known
prompts = vf.analysis.read_prompt_set("""
clean: {letter} {letter.2} {letter.3} {letter.4} {letter}
corrupted: {letter.3} {letter.2} {letter} {letter.4} {letter}
answer: {letter.2}
wrong: {letter.4}
letter: a, b, c, d, e
count: 8
""")  # what followed the last letter when it came before

# %% The score of every edge, by gradients along the way from the corrupted prompt to the clean one (EAP-IG)

scores = vf.analysis.edge_scores(checkpoint, prompts)
scores.to_frame()

# %% The strongest edges that lead from the words to the answer

circuit = scores.circuit(4)
circuit

# %% How well does the model answer with so many edges alone, beside drawn ones? 1 is as well as with all

vf.analysis.faithfulness(checkpoint, prompts, scores, draws=2).to_frame()

# %% The estimate held against a run without each edge

dict(zip(circuit, vf.analysis.measured_edges(checkpoint, prompts, circuit).round(3).tolist(), strict=True))
