"""Detects the language of a conversation by script and common words, to request a summary in that language."""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["language_of"]

LOOKED_AT = 40_000  # characters
ENOUGH = 0.2  # of the letters, for a script to decide
LEAST = 3  # common words, for a language of the Latin script
SCRIPTS = {
    "Japanese": r"[\u3040-\u30ff]",
    "Korean": r"[\uac00-\ud7af\u1100-\u11ff]",
    "Chinese": r"[\u4e00-\u9fff]",
    "Ukrainian": r"[іїєґІЇЄҐ]",
    "Russian": r"[\u0400-\u04ff]",
    "Greek": r"[\u0370-\u03ff]",
    "Arabic": r"[\u0600-\u06ff]",
    "Hebrew": r"[\u0590-\u05ff]",
    "Hindi": r"[\u0900-\u097f]",
    "Thai": r"[\u0e00-\u0e7f]",
}
SHARES = {"Japanese": 0.05, "Ukrainian": 0.02}  # of letters: written among Chinese signs, and among Cyrillic letters
COMMON = {
    "English": "the and is are of to with for that this you we not please should it from have",
    "German": "der die das und ist nicht ein eine mit für auf wir ich sie bitte den dem zu noch soll",
    "French": "le la les et est des une un pas pour dans que qui nous vous avec sur du il faut",
    "Spanish": "el la los las y es de una que no para con por en se lo del como está hay",
    "Italian": "il lo la gli e è di che non per con una del della sono come più anche questo nel",
    "Portuguese": "o os as e é de que não para com uma um do da em por no na está você",
    "Dutch": "de het een en is van niet dat voor met op zijn wij je ook naar maar dit aan moet",
    "Polish": "i w nie na się jest z do to że jak ale po od dla czy tak przez co już",
    "Turkish": "ve bir bu için ile de da değil ne çok daha olarak gibi kadar ama var mı lütfen",
}
WORDS = {name: frozenset(words.split()) for name, words in COMMON.items()}
LETTERS = re.compile(r"[^\W\d_]")
WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str:
    """Return the English name of a text's language, or nothing where it cannot be told."""
    text = text[:LOOKED_AT]
    letters = len(LETTERS.findall(text))
    if not letters:
        return ""
    if not text.isascii():
        for name, pattern in SCRIPTS.items():
            if len(re.findall(pattern, text)) >= letters * SHARES.get(name, ENOUGH):
                return name
    counts = Counter(WORD.findall(text.lower()))
    scores = {name: sum(counts[word] for word in words) for name, words in WORDS.items()}
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= LEAST else ""
