import logging
from pathlib import Path

import pytest
import torch

from models.base.assets import Assets, Speaker
from models.base.model import TtsOutput
from models.synthesizer.passage_synthesizer import infer_with_retries
from models.synthesizer.synthesizer import Synthesizer
from modules.mel import MelConfig
from processors.text.markup.ssml import Ssml
from processors.text.voice_phones import arpabet_vocabulary
from tests.models.teacher_forcing.voices import TACOTRON
from tests.worlds.untrained import save_weights, write_model
from utils.errors import InputError

FLOOR = -9.0
N_PHONES = 12


class Reader:
    """Reads every text with a seed that is among its good ones; others skip all but two phones.

    The first phone of a text chooses its good seeds; the mel is filled with the seed.
    """

    def __init__(self, good: dict[int, str]) -> None:
        self.good = good
        self.calls: list[list[int]] = []
        self.seeds: list[int] = []

    def infer(self, phone_ids, phone_lengths, *, speaker_ids, seed=0, max_frames=None):
        attempt = len(self.calls)
        self.calls.append(phone_ids[:, 0].tolist())
        self.seeds.append(seed)
        B, N = phone_ids.shape
        reads = [str(attempt) in self.good[first] for first in phone_ids[:, 0].tolist()]
        alignment = torch.zeros(B, N, N)
        for row, whole in enumerate(reads):
            places = torch.arange(N) if whole else torch.arange(N) % 2
            alignment[row, torch.arange(N), places] = 1.0
        lengths = torch.tensor([N if whole else 3 for whole in reads])
        mel = torch.full((B, 2, N), float(attempt))
        durations = alignment.sum(dim=1).long()
        stopped = torch.ones(B, dtype=torch.bool)
        return TtsOutput(mel, lengths, durations, alignment=alignment, stopped=stopped)


def read(reader: Reader, attempts: int = 3):
    firsts = sorted(reader.good)
    phone_ids = torch.tensor([[first] * N_PHONES for first in firsts])
    lengths = torch.full((len(firsts),), N_PHONES)
    speakers = torch.zeros_like(lengths)
    arguments = {"seed": 7, "attempts": attempts, "log_floor": FLOOR}
    return infer_with_retries(reader.infer, phone_ids, lengths, speakers, **arguments)


def test_only_texts_with_a_fault_are_read_again_with_other_seeds():
    reader = Reader({1: "0", 2: "2", 3: "1"})
    output, attention = read(reader)
    assert reader.calls == [[1, 2, 3], [2, 3], [2]]
    assert reader.seeds[0] == 7
    assert len({*reader.seeds}) == 3
    assert output.mel[:, 0, 0].tolist() == [0.0, 2.0, 1.0]  # the attempt that was kept
    assert [quality.fault for quality in attention] == ["", "", ""]


def test_the_best_of_all_attempts_is_kept_where_none_of_them_succeeds():
    reader = Reader({1: "", 2: "0"})
    output, attention = read(reader, attempts=2)
    assert len(reader.calls) == 2
    assert output.mel_lengths.tolist() == [3, N_PHONES]
    assert output.mel[0, 0].tolist() == [0.0] * 3 + [FLOOR] * (N_PHONES - 3)
    assert "10 phones in a row are skipped" in attention[0].fault


@pytest.fixture
def voice(tmp_path: Path) -> Synthesizer:
    """An untrained Tacotron 2 that says one frame of each sentence."""
    inference = {"griffin_lim_iterations": 1, "attention_attempts": 2}
    assets = Assets(MelConfig(), arpabet_vocabulary(), (Speaker("one", "en-us"),))
    network = write_model(tmp_path, "tts", "Tacotron2", TACOTRON, assets, inference=inference)
    network.decoder.gate_linear.bias.data.fill_(9.0)
    return Synthesizer(save_weights(network, tmp_path), "griffin_lim")


def test_a_voice_with_attention_speaks_and_names_sentences_that_failed(voice, caplog):
    with caplog.at_level(logging.WARNING):
        speech = voice("It was so because he wanted it. Yes.", seed=3)
    assert (speech.f0, speech.energy) == (None, None)
    assert [quality.stopped for quality in speech.attention] == [True, True]
    assert speech.durations.sum() == speech.mel.shape[1]
    assert len(speech.wav) == 256 * speech.mel.shape[1]
    warning = next(m for m in caplog.messages if "It was so" in m)
    assert "wanted it.': attention failed in every attempt" in warning
    assert "phones in a row are skipped" in warning


def test_of_ssml_it_does_what_needs_no_control(voice):
    prosody = '<prosody volume="-20dB">No.</prosody>'
    speech = voice(Ssml(f'<speak>Yes.<break time="1s"/>{prosody}</speak>'))
    rows = zip(speech.phone_names, speech.durations, strict=True)
    pauses = sum(duration for name, duration in rows if name.startswith("<"))
    assert pauses * speech.frame_s >= 1 - speech.frame_s
    for change, control in (("rate='80%'", "duration"), ("pitch='+1st'", "pitch")):
        with pytest.raises(InputError, match=f"Tacotron2 has no control of {control}"):
            voice(Ssml(f"<speak><prosody {change}>No.</prosody></speak>", strict=True))


def test_the_model_gets_the_seed_and_the_precision_that_are_asked_for(voice, tmp_path, monkeypatch):
    exact, overrides = voice("Yes.").mel, ["inference.acoustic_precision=int8"]
    rounded = Synthesizer(tmp_path, "griffin_lim", overrides=overrides)("Yes.").mel
    assert not (rounded == exact).all()
    infer, seeds = voice._passages._network.infer, []

    def recording(*arguments, seed, **named):
        seeds.append(seed)
        return infer(*arguments, seed=seed, **named)

    monkeypatch.setattr(voice._passages._network, "infer", recording)
    voice("Yes.", seed=4)
    next(voice.generate("Yes.", seed=5))
    assert {4, 5} <= {*seeds}
