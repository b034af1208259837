"""An aligner that was trained on clips of the demo's corpus."""

from unittest import mock

import numpy as np
import pytest
import soundfile

from models.programs.corpus import checking
from models.programs.corpus.checking import Checker
from models.programs.corpus.clips import CorpusClip
from models.programs.corpus.writing import _pcm
from tests.commands import ROOT

DEMO = ROOT / "egs" / "_demo" / "LJSpeech-mini"
IDS = ("LJ050-0269", "LJ002-0174", "LJ011-0202", "LJ001-0004", "LJ001-0011", "LJ001-0020")


@pytest.fixture(scope="session")
def demo_clips(tmp_path_factory):
    """A folder with the samples of clips, and the clips."""
    folder = tmp_path_factory.mktemp("clips")
    lines = (DEMO / "metadata.csv").read_text().splitlines()
    texts = {id: text for id, text, *_ in (line.split("|") for line in lines)}
    clips = []
    for id in IDS:
        path = DEMO / "wavs" / f"{id}.flac"
        np.save(folder / f"{id}.npy", np.concatenate([*_pcm(path)]))
        seconds = soundfile.info(path).duration
        clips.append(CorpusClip(id, 0.1, seconds - 0.1, texts[id], 0.0, "", 0.0, seconds))
    return folder, clips


@pytest.fixture(scope="session")
def checker(demo_clips):
    """Aligns clips of `demo_clips`."""
    folder, clips = demo_clips
    trained = Checker(folder, "en-us")
    with mock.patch.object(checking, "LEAST_S", 10.0):
        assert trained.train(clips, 1)
    return trained
