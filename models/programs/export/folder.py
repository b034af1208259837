"""Writes a voice and its text front end as a folder: for onnxruntime and NumPy, or for browsers."""

import re
import shutil
import subprocess
import tarfile
from dataclasses import asdict, replace
from modulefinder import ModuleFinder
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

import onnx
from safetensors.numpy import save
from torch import nn

from config.schema import Config
from models.base.assets import Assets
from models.base.graphs import Graph, vocoder_graphs
from models.base.registry import model_of
from models.checkpoint.loading import TrainedModel, open_model
from models.checkpoint.publish import CARD
from models.programs.export import reader
from models.programs.export.onnx_file import WeightType, to_onnx
from models.programs.page import PAGE
from models.synthesizer.vocoders import GRIFFIN_LIM, open_vocoder, with_options
from models.voices import find_voice
from modules.waveform.griffin_lim import GriffinLim
from modules.waveform.griffin_lim_graph import GriffinLimGraph
from processors.text.g2p import CMUDICT_PATH
from processors.text.letter_network import PATH, bundled_network
from utils.errors import InputError
from utils.files import new_folder, write_json, write_text

_ROOT = Path(__file__).parents[3]
_PACKAGE = "frontend"
_OWN_IMPORT = re.compile(r"^(\s*from )(?=(?:config|processors|utils)\b)", re.MULTILINE)
ONE_PASS = ("acoustic", "vocoder")  # names of graphs
# in place of the file that needs NumPy; worker.js defines the module
_LETTER_NETWORK = "from browser import phones_of\n\nLetterNetwork = object\n"
# of each package, by its name and version: the files that are needed
PACKAGES = {
    "onnxruntime-web@1.30.0": ("dist/ort.wasm.bundle.min.mjs", "dist/ort-wasm-simd-threaded.wasm"),
    "pyodide@314.0.7": (
        "pyodide.mjs",
        "pyodide.asm.mjs",
        "pyodide.asm.wasm",
        "pyodide-lock.json",
        "python_stdlib.zip",
    ),
}


class ExportedVoice(NamedTuple):
    """A voice that can be exported: its networks, and what they need."""

    model: TrainedModel
    vocoder: TrainedModel | None  # None: Griffin-Lim
    graphs: dict[str, Graph]  # by the names of their files

    @property
    def temperature(self) -> float | None:
        """The voice's own factor on the noise of its flow; None: it has no flow."""
        if not any("temperature" in graph.inputs for graph in self.graphs.values()):
            return None
        own: float = cast("Any", self.model.network).config.temperature
        return own

    @property
    def speakers_by_sid(self) -> list[int]:
        """The ids of the speakers; the first, which programs take unasked, is the default one."""
        speakers, default = self.model.speakers, self.model.default_speaker()
        return sorted(range(len(speakers)), key=lambda i: speakers[i].name != default)


def open_voice(reference: str | Path, vocoder: str | Path | None = None) -> ExportedVoice:
    """Loads a voice and its vocoder, both as `Synthesizer` takes them.

    Raises:
        InputError: If a model cannot be loaded, is of the wrong kind, has no graphs or not its
            default speaker, or if the vocoder was made for another mel.
    """
    opened = open_model(find_voice(reference) if isinstance(reference, str) else reference)
    opened.require_task("tts", reference)
    opened.default_speaker()  # refuses an unknown one
    of_vocoder = open_vocoder(vocoder, opened.assets.mel)
    graphs, settings = _graphs_of(opened, opened.network), opened.config.inference
    if of_vocoder.model is None:
        module = GriffinLimGraph(GriffinLim(of_vocoder.mel, settings.griffin_lim_iterations))
        graphs |= vocoder_graphs(module, of_vocoder.mel.n_mels)
        return ExportedVoice(opened, None, graphs)
    network = with_options(of_vocoder.model, settings, of_vocoder.name)
    graphs |= _graphs_of(of_vocoder.model, network)
    return ExportedVoice(opened, of_vocoder.model, graphs)


def export_voice(voice: ExportedVoice, target: Path, weight_type: WeightType = "fp32") -> None:
    """Writes the folder `target`, completely or not at all.

    Raises:
        InputError: If `target` is not empty.
    """
    with new_folder(target) as folder:
        write_networks(voice, folder, weight_type)
        write_frontend(voice.model.config, voice.model.assets, folder)
        for name in ("speak.py", "attention.py"):
            shutil.copyfile(Path(__file__).with_name(name), folder / name)


def check_one_pass(voice: ExportedVoice) -> None:
    """Raises InputError if a voice takes more than one pass, or noise."""
    if set(voice.graphs) != set(ONE_PASS) or "noise" in voice.graphs["vocoder"].inputs:
        raise InputError(
            f"{voice.model.home}: this format needs one pass of an acoustic model and of a vocoder"
            " without noise: FastSpeech 2, FastPitch, FlowSpeech or Matcha, and FreeVGL, HiFi-GAN,"
            " Vocos or griffin_lim"
        )


def write_networks(voice: ExportedVoice, folder: Path, weight_type: WeightType) -> None:
    """Writes the graphs, voice.json with the numbers that their use needs, and the licences."""
    for name, graph in voice.graphs.items():
        onnx.save(to_onnx(graph, weight_type), folder / f"{name}.onnx")
    model = voice.model
    inputs = {name for graph in voice.graphs.values() for name in graph.inputs}
    description = {
        "format": 1,
        "graphs": list(voice.graphs),
        "sample_rate": model.mel.sample_rate,
        "hop_length": model.mel.hop_length,
        "n_mels": model.mel.n_mels,
        "sentence_pause_s": model.config.inference.sentence_pause_s,
        "speakers": [speaker._asdict() for speaker in model.speakers],
        "speaker": model.default_speaker(),
        "controls": [name for name in ("duration", "pitch", "energy") if name in inputs],
        "temperature": voice.temperature,
        "model": model.config.model_type,
        "vocoder": GRIFFIN_LIM if voice.vocoder is None else voice.vocoder.config.model_type,
    }
    write_json(folder / "voice.json", description)
    copy_licences(voice, folder)


def _graphs_of(model: TrainedModel, network: nn.Module) -> dict[str, Graph]:
    graphs = model_of(model.config).graphs
    if graphs is None:
        raise InputError(
            f"{model.home}: {model.config.model_type} cannot be exported: its model file defines no"
            " graphs"
        )
    return dict(graphs(network))


def copy_licences(voice: ExportedVoice, folder: Path) -> None:
    """Copies the licence of Arion, for the code, and model cards, which name other licences."""
    shutil.copyfile(_ROOT / "LICENSE", folder / "LICENSE")
    for name, model in (("voice", voice.model), ("vocoder", voice.vocoder)):
        if model is not None and (model.home / CARD).is_file():
            shutil.copyfile(model.home / CARD, folder / f"README_{name}.md")


def write_frontend(config: Config, assets: Assets, folder: Path) -> None:
    """Writes the package, frontend.json with its settings, and the user's lexicon if there is one.

    The package holds each file of Arion that `reader` imports, directly or not. It needs NumPy,
    and phonemizer with espeakng-loader for phones of espeak-ng.
    """
    finder = ModuleFinder(path=[str(_ROOT)])
    finder.run_script(reader.__file__)
    for name, module in finder.modules.items():
        file = vars(module)["__file__"]
        if file is None:
            continue  # built into Python
        source = Path(file)
        place = "__init__.py" if name == "__main__" else source.relative_to(_ROOT)
        code = _OWN_IMPORT.sub(rf"\g<1>{_PACKAGE}.", source.read_text(encoding="utf-8"))
        write_text(folder / _PACKAGE / place, code, flush=False)
    data = CMUDICT_PATH.parent
    shutil.copytree(data, folder / _PACKAGE / data.relative_to(_ROOT))
    lexicon_path, inference = "", config.inference
    if assets.lexicon is not None:
        lexicon_path = reader.LEXICON
        (folder / lexicon_path).write_text(assets.lexicon, encoding="utf-8")
    settings = {
        "text": asdict(replace(config.preprocess.text, lexicon_path=lexicon_path)),
        "max_phones": inference.max_phones,
        "p_arpabet": config.spoken_p_arpabet,
        "trained_phones": sorted(assets.known_phones),
        "unknown_phones": inference.unknown_phones,
        "unknown_characters": inference.unknown_characters,
        "symbols": assets.required_vocabulary().symbols,
    }
    write_json(folder / reader.SETTINGS, settings)


def export_web(voice: ExportedVoice, target: Path, weight_type: WeightType = "fp32") -> None:
    """Writes the folder `target`, completely or not at all.

    Raises:
        InputError: If the voice cannot speak in a browser, as one with phones of espeak-ng, a
            package cannot be downloaded, or `target` is not empty.
    """
    check_one_pass(voice)
    if voice.model.config.preprocess.text.has_espeak:
        raise InputError(
            f"{voice.model.home}: this voice needs phones of espeak-ng, which browsers do not have;"
            " use another --format"
        )
    with new_folder(target) as folder:
        fetch_packages(folder)
        write_networks(voice, folder, weight_type)
        with TemporaryDirectory() as temporary:
            package = Path(temporary) / "frontend" / "processors" / "text"
            write_frontend(voice.model.config, voice.model.assets, Path(temporary))
            (package / "letter_network.py").write_text(_LETTER_NETWORK, encoding="utf-8")
            (package / "data" / PATH.name).unlink()
            shutil.make_archive(str(folder / "frontend"), "zip", temporary)
        weights, choices = bundled_network()  # apart from the front end, in 32 bits
        content = save(weights, {"phones": ",".join(" ".join(choice) for choice in choices)})
        (folder / "letter_to_sound.safetensors").write_bytes(content)
        for path in Path(__file__).with_name("web").iterdir():
            shutil.copyfile(path, folder / path.name)
        shutil.copyfile(PAGE, folder / "index.html")
        shutil.copy(CMUDICT_PATH.with_suffix(".LICENSE"), folder)


def fetch_packages(folder: Path) -> None:
    """Downloads the packages with npm, which checks them; writes their files, a folder for each.

    Raises:
        InputError: If npm is missing, or cannot download a package.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise InputError("npm is missing, by which onnxruntime-web and Pyodide come: install it")
    for package, names in PACKAGES.items():
        with TemporaryDirectory() as temporary:
            command = [npm, "pack", package, "--pack-destination", temporary]
            done = subprocess.run(command, capture_output=True, text=True, cwd=temporary)
            if done.returncode != 0:
                reason = " ".join(done.stderr.split())[:200]
                raise InputError(f"npm pack {package} failed; check the network: {reason}")
            (archive,) = Path(temporary).glob("*.tgz")
            with tarfile.open(archive) as file:
                file.extractall(temporary, filter="data")
            target = folder / package.partition("@")[0]
            target.mkdir()
            for name in names:
                shutil.copy(Path(temporary) / "package" / name, target)
