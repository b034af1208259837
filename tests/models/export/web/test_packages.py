import shutil
import sys
import tarfile

import pytest

from models.export.web.packages import PACKAGES, fetch_packages
from utils.errors import InputError

FAILS = "import sys\nsys.exit('npm error code E404')\n"
PACKS = """
import shutil, sys
package, target = sys.argv[2], sys.argv[4]
shutil.copy(f"{sys.argv[0]}.{package}.tgz", target)
"""


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
