"""The notebook runs from top to bottom."""

import json
from pathlib import Path

from tests.processes import Process
from tests.recipes.runs import HELD_OUT, TRAINING, write_corpus

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
FASTER = {
    '"train.max_steps": 20,': '"train.max_steps": 1, **FEW,',
    '"train.valid_steps": 10,': '"train.valid_steps": 1,',
}
FEW = {
    "preprocess.backend": "sequential",
    "preprocess.split.test_ids": json.dumps(HELD_OUT),
    "preprocess.split.valid_ids": json.dumps(TRAINING[:1]),
    "train.valid_samples": 0,
    "train.score_steps": 0,
}


def test_the_notebook_speaks_trains_and_compares(tmp_path):
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in notebook["cells"] if "outputs" in cell)
    code = "\n".join(cells)
    for setting, faster in FASTER.items():
        assert setting in code
        code = code.replace(setting, faster)
    checks = "assert len(shown) == 3 and before.wav.tobytes() != after.wav.tobytes()"
    write_corpus(tmp_path / "corpus")
    few = FEW | {"dataset_path.LJSpeech-mini": str(tmp_path / "corpus")}
    program = "\n".join([IPYTHON, f"FEW = {few}", code, checks])
    done = Process("-c", program, folder=tmp_path, MPLBACKEND="agg").finish()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "update 1: validation loss" in done.stdout
    assert "fine-tuned: " in done.stdout
