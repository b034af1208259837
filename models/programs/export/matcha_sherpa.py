"""The files of sherpa-onnx's layout for Matcha-TTS: acoustic model and vocoder, a graph each.

sherpa-onnx puts blanks between the characters of a lexicon, or of phones that a program gives.
"""

import onnx
import torch
from onnx import helper
from torch import Tensor, nn

from config.text import is_english
from models.base.graphs import EXAMPLE_LENGTH
from models.programs.export.folder import ExportedVoice
from models.programs.export.onnx_file import WeightType, to_onnx
from processors.text.espeak import EspeakPhonemizer
from processors.text.g2p import CMUDICT_PATH
from processors.text.symbols import BLANK, ESPEAK_CHARACTERS

NOISE_SCALE = 0.667  # the programs' default, which stands for the voice's temperature
_NOT_SPOKEN = "^$_"  # looked up by the program (the first two), and never put between phones


class SherpaInputs(nn.Module):
    """The graph "acoustic" of a voice with the inputs of sherpa-onnx."""

    def __init__(self, voice: ExportedVoice) -> None:
        super().__init__()
        graph = voice.graphs["acoustic"]
        self.acoustic, self.inputs = graph.module, graph.inputs
        self.temperature = (voice.temperature or 0) / NOISE_SCALE
        self.register_buffer("speakers", torch.tensor(voice.speakers_by_sid))

    def forward(
        self, x: Tensor, _x_length: Tensor, noise_scale: Tensor, length_scale: Tensor, *sid: Tensor
    ) -> tuple[Tensor, ...]:
        """Synthesises one item, (1, N), by factors and the number of a speaker, (1,) each."""
        speaker = self.get_buffer("speakers")[sid[0] if sid else torch.zeros_like(x[0, :1])]
        values = {
            "phone_ids": x,
            "speaker_id": speaker,
            "duration": length_scale[None],
            **dict.fromkeys(("pitch", "energy"), torch.ones(1, 1)),
            "temperature": self.temperature * noise_scale,
            "seed": torch.zeros_like(speaker),
        }
        outputs: tuple[Tensor, ...] = self.acoustic(*(values[name] for name in self.inputs))
        return outputs


def matcha_models(voice: ExportedVoice, weight_type: WeightType) -> dict[str, onnx.ModelProto]:
    """Builds the graphs by file name.

    Inputs of "model" are `x` (1, N) ids, `x_length` (1,) which is not used, `noise_scale` (1,) of
    which 0.667 stands for the voice's temperature, `length_scale` (1,), a factor on durations, and
    with several speakers `sid` (1,); its first output is the mel, (1, M, T).
    """
    model, factor, number = voice.model, torch.ones(1), torch.zeros(1, dtype=torch.int64)
    x = torch.ones(1, EXAMPLE_LENGTH, dtype=torch.int64)
    inputs = {"x": x, "x_length": number, "noise_scale": factor, "length_scale": factor.clone()}
    inputs |= {"sid": number.clone()} if len(model.speakers) > 1 else {}
    graph = voice.graphs["acoustic"]._replace(
        module=SherpaInputs(voice),
        inputs=inputs,
        lengths={"x": {1: "n_phones"}, "mel": {2: "n_frames"}},
        broadcast={},
    )
    acoustic, vocoder = (to_onnx(g, weight_type) for g in (graph, voice.graphs["vocoder"]))
    facts = {
        "model_type": "matcha-tts",
        "language": "English",
        "voice": model.speakers[0].language,
        "sample_rate": str(model.mel.sample_rate),
        "n_speakers": str(len(model.speakers)),
        "has_espeak": "1",
        "jieba": "0",
        "use_eos_bos": "0",
        "pad_id": str(model.assets.required_vocabulary().ids([BLANK])[0]),
    }
    helper.set_model_props(acoustic, facts)
    helper.set_model_props(vocoder, {"model_type": "hifigan"})
    return {"model": acoustic, "vocoder": vocoder}


def matcha_tokens() -> str:
    """Returns lines of a character and its id; the second of two apostrophes is used."""
    ids = dict.fromkeys(_NOT_SPOKEN, 0)
    ids |= {char: i for i, char in enumerate(ESPEAK_CHARACTERS, start=1)}
    return "".join(f"{char} {i}\n" for char, i in ids.items())


def matcha_lexicon(voice: ExportedVoice) -> str:
    """Returns lines of a word and its characters: the user's words, in English then CMUdict's."""
    language, lexicon = voice.model.speakers[0].language, voice.model.assets.lexicon or ""
    entries = (line.split() for line in lexicon.splitlines() if line.strip())
    lines = {word.lower(): " ".join("".join(phones)) for word, *phones in entries}
    phonemize = EspeakPhonemizer(language)
    known = CMUDICT_PATH.read_text(encoding="utf-8").splitlines() if is_english(language) else []
    for word in (line.split()[0] for line in known):
        if "(" not in word:  # another pronunciation
            lines.setdefault(word, " ".join("".join(phonemize([word])[0].phones)))
    return "".join(f"{word} {characters}\n" for word, characters in lines.items())
