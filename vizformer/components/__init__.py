"""Browser components: pictures that people click, zoom and walk through with the keyboard.

A component is one Python module with its JavaScript and CSS beside it, and two doors: `mount()` puts it on a Streamlit page,
`to_html()` makes a file that needs neither a server nor a network.  Views of heads have a third, `notebook.HeadsWidget`.
`memory`, `follow` and `lead`, which draw nothing, and `whole_model` have the first alone; `saved_runs` has the second alone,
and so have `matrix`, `table`, `cuts`, `listing`, `lookup` and `tinted_text`, HTML without a script.

What a picture of heads asks, and who answers, is in `contract`.  ENGLISH of a module are all its texts, said in the
language of `word_tables.speak`; `key` is the identity on the page and the place in session state.  `selected` is what the
page wants selected: it keeps what `mount` returns and passes it again, and a value that differs from it is obeyed.  What
does not fit its labels, or cannot be drawn, is a ValueError.  Importing this package loads neither streamlit nor torch.

    heads = vizformer.analysis.TraceNumbers(trace).heads("cross")   # or whatever answers as `contract.Heads` says
    attention.to_html(attention.pack(heads), query_tokens=heads.query_tokens, key_tokens=heads.key_tokens)
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.components import attention as attention
    from vizformer.components import evidence as evidence
    from vizformer.components import lines as lines
    from vizformer.components import mask as mask
    from vizformer.components import matrix as matrix
    from vizformer.components import memory as memory
    from vizformer.components import player as player
    from vizformer.components import sortable as sortable
    from vizformer.components import stations as stations
    from vizformer.components import table as table
    from vizformer.components import tokens as tokens
    from vizformer.components import tree as tree
    from vizformer.components import whole_model_picture as whole_model_picture

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
