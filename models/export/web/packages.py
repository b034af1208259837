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
    """Gets the files with npm, which checks them, and writes them into a folder per package.

    Raises:
        InputError: If npm is missing, or cannot get a package.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise InputError("npm, which gets onnxruntime-web and Pyodide, is missing: install Node.js")
    for package, names in PACKAGES.items():
        with TemporaryDirectory() as temporary:
            command = [npm, "pack", package, "--pack-destination", temporary]
            done = subprocess.run(command, capture_output=True, text=True, cwd=temporary)
            if done.returncode != 0:
                lines = done.stderr.splitlines()
                reason = next((line for line in lines if line.startswith("npm error ")), lines[-1:])
                raise InputError(f"npm pack {package} failed ({reason}); is the registry reachable?")
            (archive,) = Path(temporary).glob("*.tgz")
            target = folder / package.partition("@")[0]
            target.mkdir()
            with tarfile.open(archive) as file:
                for name in names:
                    member = file.extractfile(f"package/{name}")
                    assert member is not None
                    (target / Path(name).name).write_bytes(member.read())
