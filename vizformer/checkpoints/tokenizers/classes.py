"""Which tokenizer a folder without tokenizer.json asks for: most say it, by the name of a class of `transformers`.

A family's own vocabulary is what its first models had.  Many later ones have the body of one family and the words of
another: Chinese GPT-2 and BART read BERT's vocab.txt.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.checkpoints.tokenizers.special_tokens import SETTINGS, settings
from vizformer.checkpoints.tokenizers.vocabularies import Vocabularies, gpt_2, gpt_neox, qwen, wordpiece
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

_WORDPIECE = {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"}
_OF_FAMILIES = _WORDPIECE | {
    "",
    "PreTrainedTokenizer",
    "TokenizersBackend",
    "GPT2Tokenizer",
    "CodeGenTokenizer",
    "RobertaTokenizer",
    "BartTokenizer",
    "GPTNeoXTokenizer",
    "Qwen2Tokenizer",
    "LlamaTokenizer",
    "CodeLlamaTokenizer",
    "GemmaTokenizer",
    "T5Tokenizer",
    "MarianTokenizer",
    "XLMRobertaTokenizer",
    "CamembertTokenizer",
    "MBartTokenizer",
    "MPNetTokenizer",
}
_REFUSED: Mapping[str, Message] = {
    "BertJapaneseTokenizer": N_("Japanese is first split into words by another program (MeCab, Sudachi, Juman)"),
    "BertweetTokenizer": N_("texts are cleaned in a way of its own, and its pieces end in @@"),
    "PhobertTokenizer": N_("texts have to be split into words by another program, and its pieces end in @@"),
    "HerbertTokenizer": N_("words are split in a way of its own, and its pieces end in </w>"),
}
_READ: Mapping[str, Callable[[Folder], Backend]] = {
    "GPT2Tokenizer": gpt_2,
    "CodeGenTokenizer": gpt_2,
    "GPTNeoXTokenizer": gpt_neox,
    "Qwen2Tokenizer": qwen,
    "LlamaTokenizer": sentencepiece_or_refuse,
}


def by_class(folder: Folder, of_family: Callable[[Folder], Backend | Vocabularies]) -> Backend | Vocabularies:
    """The tokenizer that the folder names; where it names none that is known, the family's, which is noted."""
    name = _named(folder)
    if name in _REFUSED:
        raise CheckpointError(
            "{file} asks for {name}, which VizFormer does not read: {why}. Take a model with tokenizer.json.",
            file=SETTINGS,
            name=name,
            why=_REFUSED[name],
        )
    if name in _WORDPIECE and folder.has("vocab.txt"):
        return wordpiece(folder)
    found = of_family(folder)
    if name in _OF_FAMILIES:
        return found
    read = found if isinstance(found, Vocabularies) else Vocabularies(found)
    note = N_(
        "VizFormer does not know a tokenizer called {name}: it reads its files as those of the family",
        name=shown(name),
    )
    return replace(read, notes=(*read.notes, note))


def by_class_alone(folder: Folder) -> Backend:
    """The tokenizer of a folder of no family: where its class is one whose files say all that there is to know."""
    read = _READ.get(_named(folder))
    return only_tokenizer_json(folder) if read is None else read(folder)


def _named(folder: Folder) -> str:
    """The class, without the ending that says only how it is made."""
    for said in (settings(folder), folder.object("config.json") if folder.has("config.json") else {}):
        name = said.get("tokenizer_class")
        if isinstance(name, str):
            return name.removesuffix("Fast")
    return ""
