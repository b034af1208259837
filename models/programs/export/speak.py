"""Speaks a text with the voice in this folder.

    python speak.py "Any text." -o speech.wav

It needs numpy and onnxruntime. The parts, to be written in another language:
1. `frontend` turns a text into sentences, a sentence into clauses, a clause into phone ids.
2. acoustic.onnx, or attention.py, turns the phone ids of a clause into a mel; vocoder.onnx turns
   that into sound.
3. Sentences are joined with silence between them.
voice.json holds the numbers that this needs.
"""

import argparse
import json
import sys
import wave
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from attention import decode
from frontend import Reader

FADE_S = 0.005  # at both ends of a clause: an edge that is not at zero would click
PEAK = 0.99  # louder speech is scaled down to this


class Voice:
    """A voice that speaks.

    Args:
        folder: With voice.json and the files next to it.
        threads: Number that the networks use; 0: all cores.

    Attributes:
        facts: What voice.json holds.
        sample_rate: Samples per second.
    """

    def __init__(self, folder: Path = Path(__file__).parent, threads: int = 0) -> None:
        self.facts = json.loads((folder / "voice.json").read_text(encoding="utf-8"))
        self.sample_rate: int = self.facts["sample_rate"]
        self._reader = Reader(folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        open_graph = partial(onnxruntime.InferenceSession, providers=["CPUExecutionProvider"])
        names = self.facts["graphs"]
        self._graphs = {name: open_graph(folder / f"{name}.onnx", options) for name in names}

    def __call__(self, text: str, **settings: Any) -> np.ndarray:  # noqa: ANN401
        """Speaks a text of any length.

        Args:
            text: Any text of the speaker's language.
            settings: Those of `generate`.

        Returns:
            (S,) float32 in [-1, 1].
        """
        wav = np.concatenate(list(self.generate(text, **settings)))
        peak = float(np.abs(wav).max(initial=0))
        return wav * np.float32(PEAK / peak) if peak > 1 else wav

    def generate(
        self,
        text: str,
        *,
        speaker: str | None = None,
        pace: float = 1,
        pitch: float = 1,
        energy: float = 1,
        temperature: float | None = None,
        seed: int = 0,
    ) -> Iterator[np.ndarray]:
        """Speaks a text clause by clause.

        Args:
            speaker: Name; None: the default one.
            pace: Factor on the speed; 1.2 is 20 % faster.
            pitch: Factor on F0.
            energy: Factor on the energy of the mel.
            temperature: Factor on the noise of a flow, from 0 to 2; None: the voice's own.
            seed: Seeds the noise of models that take it.

        Yields:
            (n,) float32: clauses and the silence between sentences.

        Raises:
            ValueError: If the voice has no such speaker, or cannot change what is asked for.
        """
        number = self._speaker(speaker)
        controls = self._factors({"pace": pace, "pitch": pitch, "energy": energy})
        controls |= self._flow(temperature, seed)
        noise = np.random.default_rng(seed)
        sentences = self._reader(text, self.facts["speakers"][number]["language"])
        for i, sentence in enumerate(sentences):
            if i > 0:
                yield np.zeros(self._pause_samples(1 / pace), np.float32)
            for clause in sentence:
                mel = self.mel(clause.phone_ids, number, controls, noise)
                yield self._faded(self.wav(mel, noise))

    def mel(
        self,
        phone_ids: list[int],
        speaker: int,
        controls: dict[str, np.ndarray],
        noise: np.random.Generator,
    ) -> np.ndarray:
        """Runs the acoustic model on a clause.

        Args:
            phone_ids: N of them.
            speaker: From 0.
            controls: Factors on "duration", "pitch" and "energy", where the voice has it: (1, 1),
                or one for each phone, (1, N), float32. Of a flow also "temperature", (1,) float32,
                and "seed", (1,) int64.
            noise: For models with dropout in synthesis.

        Returns:
            Natural log, (1, n_mels, T).
        """
        inputs = {"phone_ids": np.array([phone_ids]), "speaker_id": np.array([speaker])}
        if "acoustic" not in self._graphs:
            return decode(self._graphs, inputs, noise)
        mel: np.ndarray = self._graphs["acoustic"].run(["mel"], inputs | controls)[0]
        return mel

    def wav(self, mel: np.ndarray, noise: np.random.Generator) -> np.ndarray:
        """Runs the vocoder on a mel, (1, n_mels, T) -> (T * hop_length,)."""
        inputs = {"mel": mel}
        vocoder = self._graphs["vocoder"]
        if "noise" in (tensor.name for tensor in vocoder.get_inputs()):
            shape = (1, mel.shape[2], self.facts["hop_length"])
            inputs["noise"] = noise.standard_normal(shape, np.float32)
        wav: np.ndarray = vocoder.run(["wav"], inputs)[0]
        return wav[0]

    def _speaker(self, name: str | None) -> int:
        names = [speaker["name"] for speaker in self.facts["speakers"]]
        name = self.facts["speaker"] if name is None else name
        if name not in names:
            raise ValueError(f"speaker {name}: expected one of {', '.join(names)}")
        return names.index(name)

    def _factors(self, asked: dict[str, float]) -> dict[str, np.ndarray]:
        known = self.facts["controls"]
        for name, value in asked.items():
            if not 0.1 <= value <= 10:
                raise ValueError(f"the factor {value:g} on the {name} is not from 0.1 to 10")
            if value != 1 and (name if name != "pace" else "duration") not in known:
                raise ValueError(f"this voice has no control of {name}")
        factors = {**asked, "duration": 1 / asked["pace"]}
        return {name: np.full((1, 1), factors[name], np.float32) for name in known}

    def _flow(self, temperature: float | None, seed: int) -> dict[str, np.ndarray]:
        """Returns the inputs of a flow; none of a voice without one."""
        if not 0 <= seed < 2**63:
            raise ValueError(f"the seed {seed} is not from 0 to 2^63 - 1")
        own = self.facts["temperature"]
        if own is None:
            if temperature is not None:
                raise ValueError("this voice has no control of temperature")
            return {}
        temperature = own if temperature is None else temperature
        if not 0 <= temperature <= 2:
            raise ValueError(f"the temperature {temperature:g} is not from 0 to 2")
        return {"temperature": np.array([temperature], np.float32), "seed": np.array([seed])}

    def _pause_samples(self, slower: float) -> int:
        """Returns the samples of the pause between sentences, in whole frames."""
        hop_length: int = self.facts["hop_length"]
        seconds = self.facts["sentence_pause_s"] * slower
        return round(seconds * self.sample_rate / hop_length) * hop_length

    def _faded(self, wav: np.ndarray) -> np.ndarray:
        """Fades the ends by half cosines."""
        n = min(round(FADE_S * self.sample_rate), len(wav) // 2)
        positions = np.arange(len(wav))
        from_edge = np.minimum(positions, positions[::-1]).clip(max=n)
        return (wav * (0.5 - 0.5 * np.cos(np.pi * from_edge / max(n, 1)))).astype(np.float32)


def write_wav(path: Path, wav: np.ndarray, sample_rate: int) -> None:
    """Writes (S,) in [-1, 1] as a WAV file of 16 bits."""
    samples = (wav * 32768).round().clip(-32768, 32767).astype("<i2")
    with path.open("wb") as output, wave.open(output, "wb") as file:
        file.setparams((1, 2, sample_rate, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())


def main() -> None:
    """Speaks the text of the command line, or of standard input."""
    parser = argparse.ArgumentParser(description="Speaks a text with the voice in this folder.")
    parser.add_argument("text", help="the text; - for standard input")
    parser.add_argument("-o", "--output", type=Path, default=Path("speech.wav"), metavar="FILE")
    parser.add_argument("--speaker", help="name (default: that in voice.json)")
    for name in ("pace", "pitch", "energy"):
        parser.add_argument(f"--{name}", type=float, default=1, help="factor, 0.1 to 10")
    parser.add_argument("--temperature", type=float, help="of the noise of a flow, 0 to 2")
    parser.add_argument("--seed", type=int, default=0, help="of models that draw noise")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    given = vars(parser.parse_args())
    text, path, threads = given.pop("text"), given.pop("output"), given.pop("threads")
    try:
        voice = Voice(threads=threads)
    except Exception as error:  # noqa: BLE001  (onnxruntime's errors have no base of their own)
        sys.exit(f"speak.py: a file of this folder is damaged or missing ({error}); copy it again")
    try:
        if path.suffix.lower() != ".wav":
            raise ValueError(f"{path}: only WAV is written; end the name with .wav")
        wav = voice(sys.stdin.read() if text == "-" else text, **given)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_wav(path, wav, voice.sample_rate)
    except (ValueError, OSError) as error:
        sys.exit(f"speak.py: {error}")


if __name__ == "__main__":
    main()
