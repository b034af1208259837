"""American English phones of espeak-ng (IPA) to ARPAbet, for words outside the lexicons."""

from collections.abc import Sequence
from itertools import chain

# If one espeak phone maps to several ARPAbet phones, the vowel is first and carries the stress.
_VOWELS = {
    "a": "AE", "aː": "AA", "æ": "AE", "ɑ": "AA", "ɑː": "AA", "ɒ": "AA",
    "ʌ": "AH", "ə": "AH", "ɐ": "AH", "ɔ": "AO", "ɔː": "AO", "o": "OW", "oː": "AO",
    "ɛ": "EH", "e": "EH", "eː": "EY", "ɛː": "EH", "ɜ": "ER", "ɜː": "ER", "ɚ": "ER",
    "ɪ": "IH", "ᵻ": "IH", "i": "IY", "iː": "IY", "ʊ": "UH", "u": "UW", "uː": "UW", "ɨ": "IH",
    "aɪ": "AY", "aʊ": "AW", "eɪ": "EY", "oʊ": "OW", "əʊ": "OW", "ɔɪ": "OY", "ɔø": "OY",
    "aɪə": "AY AH0", "aɪɚ": "AY ER0", "aʊə": "AW AH0", "aʊɚ": "AW ER0",
    "iə": "IY AH0", "ɪə": "IH AH0", "ʊə": "UH AH0", "eə": "EH AH0", "oə": "AO AH0",
    "əl": "AH L", "ən": "AH N", "n̩": "AH N", "l̩": "AH L", "m̩": "AH M",
    "ɑːɹ": "AA R", "ɑɹ": "AA R", "ɔːɹ": "AO R", "ɔɹ": "AO R", "oːɹ": "AO R", "oɹ": "AO R",
    "ɛɹ": "EH R",  "ɪɹ": "IH R", "ʊɹ": "UH R", "iɹ": "IY R", "aɪɹ": "AY R",
    "ɑ̃": "AA N", "ɔ̃": "AO N", "ɛ̃": "AE N", "œ̃": "AH N",
    "y": "UW", "yː": "UW", "ø": "ER", "øː": "ER", "œ": "ER",
}  # fmt: skip
_CONSONANTS = {
    "b": "B", "d": "D", "f": "F", "ɡ": "G", "g": "G", "h": "HH", "j": "Y", "k": "K", "l": "L",
    "m": "M", "n": "N", "ŋ": "NG", "p": "P", "r": "R", "ɹ": "R", "s": "S", "ʃ": "SH", "t": "T",
    "tʃ": "CH", "dʒ": "JH", "θ": "TH", "ð": "DH", "v": "V", "w": "W", "z": "Z", "ʒ": "ZH",
    "ɾ": "T", "ʔ": "T", "x": "K", "ç": "HH", "ɬ": "L", "ɫ": "L", "ɲ": "N Y", "ʍ": "W",
    "ts": "T S", "dz": "D Z", "ʁ": "R", "ʋ": "V", "c": "K", "ɟ": "G", "ʎ": "L Y", "β": "V",
    "ɣ": "G", "χ": "K", "ɸ": "F",
}  # fmt: skip


def _with_stress(names: str, stress: str) -> tuple[str, ...]:
    vowel, *rest = names.split()
    return (vowel + stress, *rest)


# by espeak's phone with its stress mark
ARPABET_OF_IPA: dict[str, tuple[str, ...]] = {
    **{
        mark + phone: _with_stress(names, stress)
        for mark, stress in (("", "0"), ("ˈ", "1"), ("ˌ", "2"))
        for phone, names in _VOWELS.items()
    },
    **{phone: tuple(names.split()) for phone, names in _CONSONANTS.items()},
}


def to_arpabet(phones: Sequence[str]) -> tuple[str, ...] | None:
    """ARPAbet for espeak phones with stress marks, with at least one primary stress.

    None if `phones` is empty or one of them has no ARPAbet counterpart.
    """
    said = [ARPABET_OF_IPA.get(phone, ()) for phone in phones]
    return with_primary_stress([*chain(*said)]) if said and all(said) else None


def with_primary_stress(phones: Sequence[str]) -> tuple[str, ...]:
    """Stresses the first vowel if none is, as in espeak's function words."""
    vowels = [index for index, phone in enumerate(phones) if phone[-1].isdigit()]
    stressed = list(phones)
    if vowels and not any(phone.endswith("1") for phone in phones):
        stressed[vowels[0]] = phones[vowels[0]][:-1] + "1"
    return tuple(stressed)
