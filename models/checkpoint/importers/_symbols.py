"""The symbols of ming024's FastSpeech 2, which Amphion took over without the pinyin.

Characters first, then ARPAbet, pinyin where there is any, and the silences. Models of English were
trained on ARPAbet and silences alone; the other rows keep their places under names that no text is
read as, so that a model of Mandarin has nothing to say.
"""

from processors.text.symbols import ARPABET, NOISE, PAD, SHORT_PAUSE, SILENCE, Vocabulary

_CHARACTERS = "-!'(),.:;? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SILENCES = (SHORT_PAUSE, NOISE, SILENCE)
_N_PINYIN = 209
_SPARE = "<unused>"  # their embeddings have a row more than there are symbols


def vocabulary_of(n_rows: int) -> Vocabulary | None:
    """The names of an embedding's rows, (n_rows,): 152 without pinyin, 361 with it, else None."""
    for n_pinyin in (0, _N_PINYIN):
        symbols = _symbols(n_pinyin)
        if len(symbols) == n_rows:
            return Vocabulary(symbols)
    return None


def _symbols(n_pinyin: int) -> tuple[str, ...]:
    characters = [f"<character:{char}>" for char in _CHARACTERS.replace(" ", "␣")]
    pinyin = [f"<pinyin:{number}>" for number in range(n_pinyin)]
    return (PAD, *characters, *sorted(ARPABET), *pinyin, *_SILENCES, _SPARE)
