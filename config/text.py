"""The `preprocess.text` section: what the text front end reads."""

from dataclasses import dataclass
from typing import Literal

from config.checks import require_probability

UnknownCharacters = Literal["speak", "skip", "refuse"]  # letters that a language does not have
_Extractor = Literal["lexicon", "espeak", "letters", "mixed", "nvidia_english"]
_ImportedExtractor = Literal[
    "nvidia_english_lowercase", "tensorflowtts_english", "espeak_characters"
]


@dataclass(frozen=True)
class TextConfig:
    """From written text to phones."""

    normalizer: Literal["english", "none"] = "english"
    # `lexicon`: ARPAbet, English. `espeak`: IPA by espeak-ng. `letters`: the letters of the words,
    # any language. `mixed`: each word in letters or in ARPAbet, English. `nvidia_english` and
    # `nvidia_english_lowercase`: as `mixed`, with the symbols and ids of NVIDIA's Tacotron 2 and
    # FastPitch (english_basic, english_basic_lowercase); they keep all punctuation.
    # `tensorflowtts_english`: `nvidia_english` and a last <eos>, with the ids of TensorFlowTTS. The
    # four before need a model that finds the durations in training (`aligner: "learned"`) or needs
    # none (`"none"`), unless p_arpabet is 0. `espeak_characters`: IPA by espeak-ng in single
    # characters, all punctuation, and a blank between all, with the symbols and ids of Matcha-TTS.
    phone_extractor: Literal[_Extractor, _ImportedExtractor] = "lexicon"
    # Of letters and ARPAbet: probability of ARPAbet in training, drawn for each word and epoch, of
    # the words that CMUdict (or the lexicon) has with one pronunciation; 0: letters alone.
    # Synthesis says all of them in ARPAbet unless this is 0 (inference.p_arpabet).
    p_arpabet: float = 1.0
    lexicon_path: str = ""  # lexicon with `WORD  PH1 PH2` lines; takes precedence
    # Imported voices: `sp` maps punctuation inside a text to <sp>, and adds nothing at its edges.
    # Stage 1 writes `classes`: <sil> first, then each mark as its class (<,> <.> <?> <!>).
    pauses: Literal["classes", "sp"] = "classes"

    def __post_init__(self) -> None:
        require_probability(self, "p_arpabet")
        extractor, remedy = f"phone_extractor {self.phone_extractor}", "remove it"
        if self.p_arpabet != 1 and not self.is_mixed:
            raise ValueError(
                f"p_arpabet is {self.p_arpabet:g}, but {extractor} does not mix letters and"
                f" ARPAbet; {remedy}, or use phone_extractor mixed"
            )
        if self.lexicon_path and self.phone_extractor == "letters":
            fault = "lexicon_path holds phones, and phone_extractor letters uses none"
            raise ValueError(f"{fault}; {remedy}, or use phone_extractor mixed (English)")
        if self.keeps_punctuation and self.pauses != "classes":
            fault = f"pauses is {self.pauses}, but {extractor} keeps all punctuation"
            raise ValueError(f"{fault}; {remedy}")

    @property
    def has_nvidia_symbols(self) -> bool:
        """Whether the symbols are a set of NVIDIA's, or TensorFlowTTS's with <eos>."""
        return self.phone_extractor.startswith("nvidia_english") or self.ends_in_eos

    @property
    def has_espeak(self) -> bool:
        """Whether espeak-ng pronounces words."""
        return self.phone_extractor in ("espeak", "espeak_characters")

    @property
    def is_characters(self) -> bool:
        """Whether the symbols are single characters of IPA, with blanks between them."""
        return self.phone_extractor == "espeak_characters"

    @property
    def keeps_punctuation(self) -> bool:
        """Whether every punctuation mark and space of the text is a symbol."""
        return self.has_nvidia_symbols or self.is_characters

    @property
    def ends_in_eos(self) -> bool:
        """Whether <eos> is the last symbol of every text."""
        return self.phone_extractor == "tensorflowtts_english"

    @property
    def in_letters(self) -> bool:
        """Whether words are in letters, except those in phones of a mixture."""
        return self.phone_extractor == "letters" or self.is_mixed

    @property
    def is_mixed(self) -> bool:
        """Whether a word can be in letters or in phones."""
        return self.phone_extractor == "mixed" or self.has_nvidia_symbols

    @property
    def certain_p_arpabet(self) -> float:
        """`p_arpabet` without random draws: 0 if it is 0, otherwise 1."""
        return 1.0 if self.is_mixed and self.p_arpabet > 0 else 0.0


def is_english(language: str) -> bool:
    """Returns whether an espeak language code is one of English."""
    return language.split("-")[0] == "en"


def text_config(language: str) -> TextConfig:
    """Returns the text front end of a language: ARPAbet for English, otherwise IPA."""
    return TextConfig() if is_english(language) else TextConfig("none", "espeak")
