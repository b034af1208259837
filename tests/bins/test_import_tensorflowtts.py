from tests.commands import ROOT, command
from tests.processors.small_corpus import copy_corpus
from tests.processors.tensorflowtts.dumps import IDS

CONFIG = ROOT / "egs/tts/FastSpeech2/exp_config_tensorflowtts.json"


def test_a_corpus_becomes_a_dump_and_the_dump_processed_data(tmp_path):
    corpus, dump = copy_corpus(tmp_path / "LJSpeech", IDS), tmp_path / "dump"
    processed = f"--set=preprocess.processed_dir={tmp_path / 'data'}"
    options = ("--config", CONFIG, "--set=preprocess.backend=sequential", processed)
    share = ("--test_size", "0.3", "--seed", "42", "--n_cpus", "1")
    done = command("export_tensorflowtts", *options, "--rootdir", corpus, "--outdir", dump, *share)
    assert done.returncode == 0, done.stderr
    assert "3 train, 2 valid" in done.stderr
    done = command("import_tensorflowtts", *options, "--rootdir", dump)
    assert done.returncode == 0, done.stderr
    assert "LJSpeech: 5 utterances" in done.stderr
    done = command("import_tensorflowtts", *options, "--rootdir", dump, "--set=preprocess.f_min=0")
    assert done.returncode == 1
    assert "the mel is not that of the dump" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_number_of_processes_that_makes_no_sense_is_one_line():
    done = command("import_tensorflowtts", "--config", CONFIG, "--rootdir", "a", "--n_cpus", "0")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--n_cpus '0': expected a whole number from 1" in done.stderr
