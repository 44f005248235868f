"""Anybody's model with its tokenizer: its own code runs, and is recorded.

checkpoint     what pages and notebooks work with
wrapping       vf.wrap: what a module is, found by running it once
any_tokenizer  whatever splits texts, as one of ours
edits          numbers set by hand, as the recorder sets them
reading        what may come next, for generation
call           how a module is handed its ids, and which of what it hands back are logits
"""
