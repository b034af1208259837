"""`phoneme` of SSML: a pronunciation as phones that the front end of a voice takes in braces."""

import unicodedata
from collections.abc import Collection, Sequence

from processors.text.espeak_arpabet import ARPABET_OF_IPA, to_arpabet
from processors.text.g2p import is_arpabet
from processors.text.nearest_phones import PhoneSet, is_vowel

ALPHABETS = ("ipa", "arpabet")
_STRESSES = "ˈˌ"
_IGNORED = " .‿|"  # boundaries of syllables
_TIE = "\u0361"


def phones_of(
    pronunciation: str, alphabet: str, *, in_ipa: bool, known: Collection[str]
) -> tuple[str, ...]:
    """Phones of a voice; ARPAbet has spaces between phones.

    Args:
        in_ipa: Whether the voice has phones of the IPA, or those of ARPAbet.
        known: The phones of the voice.
    """
    if alphabet.removeprefix("x-") not in ALPHABETS:
        raise ValueError(f"alphabet {alphabet[:40]!r}; expected {' or '.join(ALPHABETS)}")
    if alphabet != "ipa":
        return _from_arpabet(pronunciation.split(), in_ipa=in_ipa, known=known)
    plain = unicodedata.normalize("NFC", pronunciation.replace(_TIE, ""))
    symbols = {phone.lstrip(_STRESSES) for phone in (known if in_ipa else ARPABET_OF_IPA)}
    phones = _stressed(_segments(plain, symbols))
    if in_ipa:
        return phones
    spoken = to_arpabet(phones)
    if spoken is None:
        wrong = [phone for phone in phones if phone not in ARPABET_OF_IPA]
        raise ValueError(f"no sound of English: {' '.join(wrong) or 'no phone'}")
    return spoken


def _from_arpabet(
    phones: Sequence[str], *, in_ipa: bool, known: Collection[str]
) -> tuple[str, ...]:
    wrong = [phone[:10] for phone in phones if not is_arpabet(phone)]
    if wrong or not phones:
        raise ValueError(f"no phone of ARPAbet: {' '.join(wrong) or 'nothing is there'}")
    if not in_ipa:
        return tuple(phones)
    voice = PhoneSet(known)
    ipa = ("ə" if phone == "AH0" else phone for phone in phones)
    return tuple(near for phone in ipa for near in voice.nearest(phone))


def _segments(text: str, symbols: Collection[str]) -> list[str]:
    """Splits a transcription into the longest symbols; other letters take their marks with them."""
    longest = max(map(len, symbols), default=1)
    segments: list[str] = []
    place = 0
    while place < len(text):
        char = text[place]
        length = next((n for n in range(longest, 0, -1) if text[place : place + n] in symbols), 1)
        is_mark = length == 1 and unicodedata.category(char) in ("Mn", "Lm", "Sk")
        if char in _IGNORED:
            pass
        elif is_mark and char not in _STRESSES and segments and char not in symbols:
            segments[-1] += char
        else:
            segments.append(text[place : place + length])
        place += length
    return segments


def _stressed(segments: Sequence[str]) -> tuple[str, ...]:
    """Moves stress from the start of a syllable to its vowel."""
    phones: list[str] = []
    stress = ""
    for segment in segments:
        if segment in _STRESSES:
            stress = segment
        elif stress and is_vowel(segment):
            phones.append(stress + segment)
            stress = ""
        else:
            phones.append(segment)
    return tuple(phones)
