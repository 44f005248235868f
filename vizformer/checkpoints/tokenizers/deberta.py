"""The SentencePiece files of DeBERTa v2 and v3: [CLS] before a text, [SEP] behind it, [MASK] after the file's own pieces.

Source: the files published with the models, and the id that `transformers` gives [MASK] (convert_slow_tokenizer.py).
"""

from tokenizers import AddedToken, normalizers, processors
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.tokenizers import sentencepiece_files as spm
from vizformer.checkpoints.tokenizers.refusals import guarded, no_tokenizer, raise_refusal
from vizformer.checkpoints.tokenizers.special_tokens import SETTINGS, add_listed, settings

AROUND, MASK = ("[CLS]", "[SEP]"), "[MASK]"


def unigram(folder: Folder) -> Backend:
    """spm.model."""
    name = spm.find(folder)
    if name is None:
        no_tokenizer(folder, "tokenizer.json or spm.model")
    told = settings(folder)
    if told.get("split_by_punct"):
        raise_refusal(SETTINGS, "split_by_punct: words are first cut at punctuation")
    said = spm.read(folder, name)
    backend = guarded(name, lambda: spm.build(said))
    marks = [(mark, backend.token_to_id(mark)) for mark in AROUND]
    if absent := [mark for mark, id in marks if id is None]:
        raise_refusal(name, f"it lacks {', '.join(absent)}")
    if told.get("do_lower_case"):
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), backend.normalizer])
    add_listed(folder, backend, as_they_stand=True)
    backend.add_special_tokens([AddedToken(MASK, normalized=False, special=True)])  # behind the others, if it is new
    backend.post_processor = processors.TemplateProcessing(
        single=[AROUND[0], "$A", AROUND[1]],
        pair=[AROUND[0], "$A", AROUND[1], "$B:1", f"{AROUND[1]}:1"],
        special_tokens=marks,
    )
    return backend
