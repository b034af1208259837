from config.preprocess import PreprocessConfig
from processors.alignment.aligner import make_aligner
from processors.alignment.learned import SpeechTrimmer


def test_stage_1_only_trims_silence(tmp_path):
    aligner = make_aligner(PreprocessConfig(aligner="none"), tmp_path)
    assert isinstance(aligner, SpeechTrimmer)
