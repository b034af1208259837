import base64
import json
import shutil
import subprocess
import sys
import tarfile
from zipfile import ZipFile

import pytest
from safetensors.numpy import load_file

from models.programs.export import folder as exports
from models.programs.export.folder import PACKAGES, export_web, fetch_packages, open_voice
from processors.text.letter_network import PATH, bundled_network, phones_of
from processors.text.voice_phones import vocabulary_of
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_waveglow
from utils.errors import InputError

NODE = shutil.which("node")
WORDS = ["flibberty", "shibboleth", "o'blorked", "a", "spectrogram", "pannartz", "zyzzyva"]
# Reads a text without NumPy; the module `browser` is the page's.
READ = """
import json, sys, types
from pathlib import Path
sys.modules["numpy"] = sys.modules["torch"] = None
sys.modules["browser"] = types.SimpleNamespace(phones_of=lambda letters, network: ["Z"])
sys.path.insert(0, ".")
from frontend import Reader
print(json.dumps([clause._asdict() for clause in Reader(Path("."))(sys.argv[1], "en-us")[0]]))
"""
FAILS = "import sys\nsys.exit('npm error code E404')\n"
PACKS = """
import shutil, sys
package, target = sys.argv[2], sys.argv[4]
shutil.copy(f"{sys.argv[0]}.{package}.tgz", target)
"""


@pytest.fixture(scope="module")
def exported(home, vocoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("web") / "out"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(exports, "fetch_packages", lambda folder: (folder / "pyodide").mkdir())
        export_web(open_voice(home, vocoder), folder)
    return folder


def test_the_folder_has_all_that_its_files_load(exported):
    names = {path.name for path in exported.iterdir()}
    assert names == {
        *("index.html", "speech.js", "speak.js", "worker.js", "letter_to_sound.js", "pyodide"),
        *("acoustic.onnx", "vocoder.onnx", "voice.json", "frontend.zip"),
        *("letter_to_sound.safetensors", "LICENSE", "cmudict.LICENSE", "THIRD_PARTY_LICENSES.txt"),
    }
    assert json.loads((exported / "voice.json").read_text())["speakers"][0]["name"] == "anna"
    stored = load_file(exported / "letter_to_sound.safetensors")
    assert stored.keys() == bundled_network().weights.keys()


def test_the_front_end_reads_without_numpy(exported, tmp_path):
    with ZipFile(exported / "frontend.zip") as file:
        assert PATH.name not in " ".join(file.namelist())
        file.extractall(tmp_path / "apart")
    command = [sys.executable, "-I", "-c", READ, "The blorked fox."]
    [clause] = json.loads(subprocess.check_output(command, text=True, cwd=tmp_path / "apart"))
    assert clause["phones"] == ["<sil>", "DH", "AH0", "Z", "F", "AA1", "K", "S", "<.>"]
    assert clause["words"] == [["The", 1, 3], ["blorked", 3, 4], ["fox", 4, 8]]


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_the_letter_network_in_javascript_is_that_of_the_toolkit(exported, tmp_path):
    shutil.copy(exported / "letter_to_sound.js", tmp_path / "letters.mjs")
    data = base64.b64encode((exported / "letter_to_sound.safetensors").read_bytes()).decode()
    (tmp_path / "run.mjs").write_text(
        'import { openLetterNetwork } from "./letters.mjs";\n'
        f'const phonesOf = await openLetterNetwork("data:;base64,{data}");\n'
        "console.log(JSON.stringify(JSON.parse(process.argv[2]).map(phonesOf)));\n"
    )
    letters = [["'abcdefghijklmnopqrstuvwxyz".index(sign) for sign in word] for word in WORDS]
    command = [NODE, str(tmp_path / "run.mjs"), json.dumps(letters)]
    found = json.loads(subprocess.check_output(command, text=True))
    assert found == [phones_of(word) for word in letters]


def test_voices_that_a_browser_cannot_speak_are_refused(home, tmp_path):
    espeak = make_voice(
        tmp_path / "espeak", vocabulary=vocabulary_of(["a", "b"]), phone_extractor="espeak"
    )
    with pytest.raises(InputError, match="needs phones of espeak-ng, which browsers do not have"):
        export_web(open_voice(espeak, "griffin_lim"), tmp_path / "out")
    noisy = open_voice(home, make_waveglow(tmp_path / "waveglow"))
    with pytest.raises(InputError, match="a vocoder without noise"):
        export_web(noisy, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def npm_of(code, folder, monkeypatch):
    """Puts a program `npm` in the place of npm's."""
    path = folder / "npm"
    path.write_text(f"#!{sys.executable}\n{code}")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return path


def test_the_files_of_each_package_get_a_folder(tmp_path, monkeypatch):
    npm = npm_of(PACKS, tmp_path, monkeypatch)
    (tmp_path / "file").write_text("content")
    for package, names in PACKAGES.items():
        with tarfile.open(f"{npm}.{package}.tgz", "w:gz") as file:
            for name in (*names, "README.md"):
                file.add(tmp_path / "file", f"package/{name}")
    (tmp_path / "out").mkdir()
    fetch_packages(tmp_path / "out")
    written = {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.glob("out/*/*")}
    assert {"pyodide/pyodide.mjs", "onnxruntime-web/ort.wasm.bundle.min.mjs"} < written
    assert len(written) == sum(map(len, PACKAGES.values()))


def test_a_package_that_npm_cannot_get_and_a_lack_of_npm_are_one_error(tmp_path, monkeypatch):
    npm_of(FAILS, tmp_path, monkeypatch)
    with pytest.raises(InputError, match=r"npm pack onnxruntime-web@\S+ failed.*npm error code"):
        fetch_packages(tmp_path)
    (tmp_path / "npm").unlink()
    assert shutil.which("npm") is None
    with pytest.raises(InputError, match="npm is missing"):
        fetch_packages(tmp_path)
