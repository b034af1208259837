"""What a browser needs to run networks and Python: two packages of npm."""

import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from utils.errors import InputError

# of each package, by its name and version: the files that are needed
PACKAGES = {
    "onnxruntime-web@1.30.0": (
        "dist/ort.wasm.bundle.min.mjs",
        "dist/ort-wasm-simd-threaded.wasm",
    ),
    "pyodide@314.0.7": (
        "pyodide.mjs",
        "pyodide.asm.mjs",
        "pyodide.asm.wasm",
        "pyodide-lock.json",
        "python_stdlib.zip",
    ),
}


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
