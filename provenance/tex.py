"""TeX as plain Unicode text; pure.

Accents and letters, which names are full of, are read here; whatever other commands a text has is
left to ``pylatexenc``, which knows many and is a hundred times slower.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_MARKS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304",
    ".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328",
    "r": "\u030a", "d": "\u0323", "b": "\u0331",
}  # fmt: skip
_LETTERS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ",
    "aa": "å", "AA": "Å", "i": "i", "j": "j", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ",
}  # fmt: skip
_ACCENT = re.compile(
    r"\\(?:([`'^~\"=.])\s*|([uvHckrdb])(?:\s+|(?=\{)))\{?\s*(\\[ij](?![A-Za-z])|[A-Za-z])"
)
_LETTER = re.compile(r"\\(ss|ae|AE|oe|OE|aa|AA|dh|DH|th|TH|[oOlLij])(?![A-Za-z])\s?")
_SIGNIFICANT = re.compile(r"[\\{}$~%]|--|``|''")


@lru_cache(maxsize=4096)
def plain_text(tex: str) -> str:
    """Return TeX as plain Unicode in one line: accents composed, braces and commands dropped."""
    if _SIGNIFICANT.search(tex):
        if "\\" in tex:
            tex = _LETTER.sub(_letter, _ACCENT.sub(_accent, tex))
            tex = re.sub(r"\\([&%_#$ ])", r"\1", tex) if "$" not in tex else tex
        if "\\" in tex or "$" in tex:
            tex = _converted(tex)
        tex = tex.replace("{", "").replace("}", "").replace("~", " ")
        tex = tex.replace("---", "—").replace("--", "–").replace("``", "“").replace("''", "”")
    if not tex.isprintable():
        tex = "".join(c if c.isprintable() else " " for c in tex)
    return " ".join(tex.split())


def _accent(match: re.Match[str]) -> str:
    letter = match[3].removeprefix("\\")
    return unicodedata.normalize("NFC", letter + _MARKS[match[1] or match[2]])


def _letter(match: re.Match[str]) -> str:
    return _LETTERS[match[1]]


def _converted(tex: str) -> str:
    from pylatexenc.latex2text import LatexNodes2Text

    safe = re.sub(r"(?<!\\)%", r"\\%", tex)
    try:
        text: str = LatexNodes2Text(math_mode="text", keep_comments=True).latex_to_text(safe)
    except Exception:  # whatever TeX pylatexenc stumbles over, the text is still worth comparing
        return re.sub(r"\\[A-Za-z]+\s*|\\.", "", tex)
    return text
