"""The notebook runs from top to bottom."""

import json
import subprocess
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).parents[1] / "docs" / "try_it.ipynb"
# What Jupyter's kernel brings: players are made, and forgotten.
IPYTHON = """
import sys, types
shown = []
jupyter = types.ModuleType("IPython")
jupyter.version_info, jupyter.get_ipython = (9, 0), lambda: None
jupyter.Audio = lambda wav, rate: (wav.shape, rate)
jupyter.display = lambda *objects: shown.extend(objects)
sys.modules["IPython"] = sys.modules["IPython.display"] = jupyter
"""


def test_the_notebook_speaks_trains_and_compares(tmp_path):
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in notebook["cells"] if "outputs" in cell)
    code = "\n".join(cells)
    for key, steps, fewer in (("max", 20, 4), ("valid", 10, 2)):
        assert f'"train.{key}_steps": {steps},' in code
        code = code.replace(f'"train.{key}_steps": {steps},', f'"train.{key}_steps": {fewer},')
    program = tmp_path / "notebook.py"
    checks = "assert len(shown) == 3 and before.wav.tobytes() != after.wav.tobytes()"
    program.write_text("\n".join([IPYTHON, code, checks]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)],
        cwd=tmp_path,
        env={"MPLBACKEND": "agg", "PYTHONPATH": str(NOTEBOOK.parents[1]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "update 4: validation loss" in done.stdout
    assert "fine-tuned: " in done.stdout
