"""The names of phones and pauses, and ARPAbet of espeak's phones.

ARPAbet is the phone set of the CMU Pronouncing Dictionary: 39 phones, whose vowels carry a stress
digit (0 none, 1 primary, 2 secondary) or none at all, as in corpora labelled without stress.
Pauses are in angle brackets, so they cannot collide with phones of any language. Letters are in
lower case: `b` is a letter, `B` a phone.
"""

from collections.abc import Sequence
from itertools import chain

PAD = "<pad>"  # id 0 in every vocabulary
SILENCE = "<sil>"  # before the first and, in audio, after the last word
SHORT_PAUSE = "<sp>"  # a silence in the audio without punctuation in the text
NOISE = "<spn>"  # speech that could not be transcribed: not a pause
FULL_STOP = "<.>"  # also the end of a text without punctuation
QUESTION = "<?>"
PUNCTUATION_PAUSES = ("<,>", FULL_STOP, QUESTION, "<!>")
MARKS = (PAD, SILENCE, SHORT_PAUSE, *PUNCTUATION_PAUSES, NOISE)  # the first ids of vocabularies
WORD_BOUNDARY = "<space>"  # between words in letters; often 0 s long
APOSTROPHE = "'"  # a letter
# Punctuation that only the symbol sets of NVIDIA distinguish.
OTHER_PUNCTUATION = ("<->", '<">', "<(>", "<)>", "<:>", "<;>")
END = "<eos>"  # the last symbol of a text in TensorFlowTTS
BLANK = PAD  # between all symbols in texts of `espeak_characters`, inside words too
# punctuation that only these texts distinguish
_TYPOGRAPHIC = ("<¡>", "<¿>", "<—>", "<…>", "<«>", "<»>", "<“>", "<”>")
# All that is in a sequence between words.
PAUSES = (
    SILENCE, SHORT_PAUSE, *PUNCTUATION_PAUSES, WORD_BOUNDARY, *OTHER_PUNCTUATION, *_TYPOGRAPHIC,
    END, BLANK,
)  # fmt: skip

VOWELS = ("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW")
CONSONANTS = (
    "B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH",
    "T", "TH", "V", "W", "Y", "Z", "ZH",
)  # fmt: skip
STRESSES = ("", "0", "1", "2")
ARPABET = (*sorted(vowel + stress for vowel in VOWELS for stress in STRESSES), *CONSONANTS)
ARPABET_PREFIX = "@"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
SYMBOL_SETS = {  # the symbols between the pad and ARPAbet, in the order of their ids
    "nvidia_english": f"-!'(),.:;? {_LETTERS.upper()}{_LETTERS}",
    "nvidia_english_lowercase": f"-!'\"(),.:;? {_LETTERS}",
    "tensorflowtts_english": f"-!'(),.:;? {_LETTERS.upper()}{_LETTERS}",
    "espeak_characters": ';:,.!?¡¿—…"«»“” ',
}
# the 178 symbols of Matcha-TTS in the order of their ids; of the two apostrophes it uses the second
_IPA = (
    "ɑɐɒæɓʙβɔɕçɗɖðʤəɘɚɛɜɝɞɟʄɡɠɢʛɦɧħɥʜɨɪʝɭɬɫɮʟɱɯɰŋɳɲɴøɵɸθœɶʘɹɺɾɻʀʁɽʂʃʈʧʉʊʋⱱʌɣɤʍχʎʏʑʐʒʔʡʕʢ"
    "ǀǁǂǃˈˌːˑʼʴʰʱʲʷˠˤ˞↓↑→↗↘'̩'ᵻ"
)
ESPEAK_CHARACTERS = f"{SYMBOL_SETS['espeak_characters']}{_LETTERS.upper()}{_LETTERS}{_IPA}"


def mark_name(char: str) -> str:
    """Returns the name of a character of these sets."""
    if char == " ":
        return WORD_BOUNDARY
    return char if char.isalnum() or char in _IPA else f"<{char}>"


# American English phones of espeak-ng (IPA), for words outside the lexicons.
# The first of an ARPAbet phone is its sound. Of several ARPAbet phones for one of espeak, the vowel
# is first and carries the stress.
_VOWELS = {
    "æ": "AE", "a": "AE", "ɑ": "AA", "aː": "AA", "ɑː": "AA", "ɒ": "AA",
    "ʌ": "AH", "ə": "AH", "ɐ": "AH", "ɔ": "AO", "ɔː": "AO", "oː": "AO",
    "ɛ": "EH", "e": "EH", "ɛː": "EH", "ɝ": "ER", "ɜ": "ER", "ɜː": "ER", "ɚ": "ER",
    "ɪ": "IH", "ᵻ": "IH", "i": "IY", "iː": "IY", "ʊ": "UH", "u": "UW", "uː": "UW", "ɨ": "IH",
    "aɪ": "AY", "aʊ": "AW", "eɪ": "EY", "eː": "EY", "oʊ": "OW", "o": "OW", "əʊ": "OW",
    "ɔɪ": "OY", "ɔø": "OY",
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
    "m": "M", "n": "N", "ŋ": "NG", "p": "P", "ɹ": "R", "r": "R", "s": "S", "ʃ": "SH", "t": "T",
    "tʃ": "CH", "dʒ": "JH", "θ": "TH", "ð": "DH", "v": "V", "w": "W", "z": "Z", "ʒ": "ZH",
    "ɾ": "T", "ʔ": "T", "x": "K", "ç": "HH", "ɬ": "L", "ɫ": "L", "ɲ": "N Y", "ʍ": "W",
    "ts": "T S", "dz": "D Z", "ʁ": "R", "ʋ": "V", "c": "K", "ɟ": "G", "ʎ": "L Y", "β": "V",
    "ɣ": "G", "χ": "K", "ɸ": "F",
}  # fmt: skip
# of a phone without stress, the first above
IPA_OF_ARPABET = {names: ipa for ipa, names in reversed((_VOWELS | _CONSONANTS).items())}
# by espeak's phone with its stress mark
ARPABET_OF_IPA: dict[str, tuple[str, ...]] = {
    **{
        mark + phone: (names.split()[0] + stress, *names.split()[1:])
        for mark, stress in (("", "0"), ("ˈ", "1"), ("ˌ", "2"))
        for phone, names in _VOWELS.items()
    },
    **{phone: tuple(names.split()) for phone, names in _CONSONANTS.items()},
}


def to_arpabet(phones: Sequence[str]) -> tuple[str, ...] | None:
    """Converts espeak phones to ARPAbet, with a primary stress; None if one has no counterpart."""
    said = [ARPABET_OF_IPA.get(phone, ()) for phone in phones]
    return with_primary_stress([*chain(*said)]) if said and all(said) else None


def with_primary_stress(phones: Sequence[str]) -> tuple[str, ...]:
    """Stresses the first vowel if none is, as in espeak's function words."""
    vowels = [index for index, phone in enumerate(phones) if phone[-1].isdigit()]
    stressed = list(phones)
    if vowels and not any(phone.endswith("1") for phone in phones):
        stressed[vowels[0]] = phones[vowels[0]][:-1] + "1"
    return tuple(stressed)
