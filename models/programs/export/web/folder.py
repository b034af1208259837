"""Writes a voice as a page that speaks, which needs no server but one of static files."""

import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors.numpy import save

from models.programs.export.folder import ExportedVoice, write_frontend, write_networks
from models.programs.export.onnx_file import WeightType
from models.programs.export.piper_sherpa import check_one_pass
from models.programs.page import PAGE
from processors.text.g2p import CMUDICT_PATH
from processors.text.letter_network import PATH, bundled_network
from utils.errors import InputError
from utils.files import new_folder

_STATIC = Path(__file__).with_name("static")
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


def export_web(voice: ExportedVoice, target: Path, weight_type: WeightType = "fp32") -> None:
    """Writes the folder `target`, completely or not at all.

    Raises:
        InputError: If the voice cannot speak in a browser, as one with phones of espeak-ng, a
            package cannot be got, or `target` is not empty.
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
        _write_frontend(voice, folder)
        for path in _STATIC.iterdir():
            shutil.copyfile(path, folder / path.name)
        shutil.copyfile(PAGE, folder / "index.html")
        shutil.copy(CMUDICT_PATH.with_suffix(".LICENSE"), folder)


def _write_frontend(voice: ExportedVoice, folder: Path) -> None:
    """Writes the front end as an archive, and its letter-to-sound network apart, in 32 bits."""
    with TemporaryDirectory() as temporary:
        package = Path(temporary) / "frontend" / "processors" / "text"
        write_frontend(voice.model.config, voice.model.assets, Path(temporary))
        (package / "letter_network.py").write_text(_LETTER_NETWORK, encoding="utf-8")
        (package / "data" / PATH.name).unlink()
        shutil.make_archive(str(folder / "frontend"), "zip", temporary)
    weights, choices = bundled_network()
    phones = ",".join(" ".join(choice) for choice in choices)
    content = save(weights, {"phones": phones})
    (folder / "letter_to_sound.safetensors").write_bytes(content)


def fetch_packages(folder: Path) -> None:
    """Gets the packages with npm, which checks them, and writes their files, a folder for each.

    Raises:
        InputError: If npm is missing, or cannot get a package.
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
