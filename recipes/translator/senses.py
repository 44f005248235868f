"""Words of two senses: the same word, translated in two ways by what stands beside it."""

import re

from recipes.translator.english import be
from recipes.translator.lexicon import Noun
from recipes.translator.phrases import PRONOUNS, Phrase, Speaker

SLOT = re.compile(r"\{(\w+) ?(\w*)\}")


class Senses:
    """Fills the frames of senses.tsv with training nouns, or, for tests, with held-out ones."""

    def __init__(self, speaker: Speaker, held_out: bool = False) -> None:
        self.s, self.held_out = speaker, held_out

    def noun(self, kinds: str) -> Noun | None:
        fit = [n for n in self.s.nouns([kinds]) if not n.mass and not n.always_plural]
        fit = [n for n in fit if ("held" in n.kinds) == self.held_out]
        return self.s.one(fit) if fit else None

    def pair(self) -> tuple[str, str, str] | None:
        """Chinese, English and which sense of which word; None where no noun fits."""
        s = self.s
        frame = s.one(s.lexicon.senses)
        zh, en = frame.zh, frame.en
        who = s.one([p for p in PRONOUNS if p.zh not in ("你", "你们")]) if s.chance(0.4) else s.name("m f")
        chosen: dict[str, Noun] = {}
        said: dict[str, Phrase] = {}
        for kinds, form in SLOT.findall(en):
            if kinds in ("who", "whose", "was"):
                continue
            noun = chosen.get(kinds) or self.noun(kinds)
            if noun is None or noun.zh == frame.word or noun.en == frame.word:
                return None
            chosen[kinds] = noun
            if form in ("one", "many", "the", "all"):
                said[f"{kinds} {form}"] = s.thing(noun, form, described=False)
        if self.held_out and not chosen:
            return None

        def chinese(match: re.Match[str]) -> str:
            kinds, form = match.groups()
            if kinds in ("who", "whose"):
                return who.zh + ("的" if kinds == "whose" else "")
            found = said.get(f"{kinds} {form}")
            return found.zh if found else chosen[kinds].measure if form == "m" else chosen[kinds].zh

        def english(match: re.Match[str]) -> str:
            kinds, form = match.groups()
            if kinds == "was":
                return be(who.person, past=True)
            if kinds in ("who", "whose"):
                return who.en if kinds == "who" else who.own
            found = said.get(f"{kinds} {form}")
            return found.en if found else chosen[kinds].plural if form == "s" else chosen[kinds].en

        zh, en = SLOT.sub(chinese, zh), SLOT.sub(english, en)
        en = re.sub(r"\ba (?=[aeiou])", "an ", en)
        return zh, en, f"senses {frame.word} {frame.sense}"
