"""The FastSpeech 2 recipe from a corpus to speech, as a user calls it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.recipes.runs import EGS, HELD_OUT, SPLIT, Place, lines_of, write_config, write_corpus
from tests.recipes.tiny import TWO_UPDATES, tiny_model

RUN = EGS / "tts" / "FastSpeech2" / "run.sh"
# recipes of the others have tests of their own
OTHERS = (pytest.param(v, marks=pytest.mark.slow) for v in ("FreeVGL", "Vocos", "WaveGlow"))
VOCODERS = ("HiFiGAN", *OTHERS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    """All stages, from a folder that is not the repository's, with networks that train quickly."""
    folder = tmp_path_factory.mktemp("a recipe")
    write_corpus(folder / "corpus")
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 1, "conv_filter_size": 16}
    sizes |= {"encoder_hidden": 16, "decoder_hidden": 16}
    config = write_config(
        folder / "exp config.json",
        EGS.parent / "config/tts/fastspeech2_small.json",
        EGS.parent / "config/dataset/ljspeech_mini.json",
        dataset="LJSpeech-mini",
        preprocess={"aligner": "textgrid", "split": SPLIT, "backend": "loky"},
        model={"transformer": sizes, "variance_predictor": {"filter_size": 16}},
        train={"init_from": "", "max_steps": 2, "valid_samples": 0, "tracker": "none"},
        inference={"griffin_lim_iterations": 2, "save_plots": True},
    )
    place = Place(folder, config, RUN)
    names = ("--config", "exp config.json", "--name", "tiny_voice", "--num_workers", "1")
    split = ("--infer_dataset", "LJSpeech-mini", "--infer_testing_set", "test")
    done = place.run_sh("--stage", "1-3", *names, "--infer_mode", "batch", *split, cwd=folder)
    assert done.returncode == 0, done.stderr
    # The folder is complete in itself: it may move, and the data may go.
    (folder / "ckpts" / "tiny_voice").rename(place.experiment)
    return place


def test_three_stages_give_speech_and_a_picture_for_every_test_sentence(trained):
    result = trained.experiment / "result"
    assert [line["id"] for line in lines_of(result)] == sorted(HELD_OUT)
    for id in HELD_OUT:
        info = soundfile.info(result / f"{id}.wav")
        assert (info.samplerate, info.channels, info.subtype) == (22050, 1, "PCM_16")
        assert info.frames > 0
        assert (result / f"{id}.png").stat().st_size > 1000


def test_stage_4_scores_sentences_recordings_second_readings_and_copies(trained, tmp_path):
    pytest.importorskip("jiwer")
    result, folder = trained.experiment / "result", tmp_path / "my wavs"
    folder.mkdir()
    (line,) = (line for line in lines_of(result) if line["id"] == HELD_OUT[0])
    (folder / "metadata.jsonl").write_text(json.dumps(line) + "\n")
    shutil.copy(result / line["file"], folder)
    write_louder(trained.folder / "corpus" / "wavs", tmp_path / "2nd takes", HELD_OUT[:1])
    done = trained.run(
        "--stage", "4", "--infer_expt_dir", str(trained.experiment), "--infer_output_dir",
        "my wavs", "--recordings", str(trained.folder / "corpus"), "--natural", "2nd takes",
        "--metrics", "wer,duration_rmse,energy_rmse", "--checks", "all", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "scores.json").read_text())
    scores, references = report["scores"], report["references"]
    assert 0 < scores["wer_recorded"]["mean"] < 60 < scores["wer"]["mean"]
    assert (scores["wer"]["n"], scores["duration_rmse"]["n"]) == (1, 1)
    assert references["natural"]["energy_rmse"]["mean"] == pytest.approx(6.02, abs=0.01)
    assert references["copy"]["energy_rmse"]["mean"] < scores["energy_rmse"]["mean"]
    columns = "metric unit better recording my wavs copy natural"
    assert done.stdout.splitlines()[0].split() == columns.split()
    assert report["flags"]["words"] > 0
    assert [path.name for path in (folder / "copy").glob("*.wav")] == [f"{HELD_OUT[0]}.wav"]
    assert (folder / "report.html").stat().st_size > 10000


def write_louder(source: Path, target: Path, ids: list[str]) -> None:
    """Sounds of twice the amplitude."""
    target.mkdir()
    for id in ids:
        (path,) = (*source.glob(f"{id}.wav"), *source.glob(f"{id}.flac"))
        wav, rate = soundfile.read(path)
        soundfile.write(target / f"{id}.wav", 2 * wav, rate, subtype="FLOAT")


PLUGINS = """
def encode(wav, sample_rate):
    return [float(abs(wav).mean()), 0.0]


def hear(wav, sample_rate, language):
    assert language == "en-us"
    return "two birds."
"""


def test_stage_4_compares_folders_with_what_the_user_brings(trained, tmp_path):
    pytest.importorskip("jiwer")
    result = trained.experiment / "result"
    write_louder(result, tmp_path / "it's louder", HELD_OUT)
    (tmp_path / "my_voices.py").write_text(PLUGINS)
    texts = [f"{line['id']}|{line['text']}\n" for line in lines_of(result)]
    (tmp_path / "my texts").write_text("".join(texts), encoding="utf-8")
    for system, word in ((trained.experiment.name, "the"), ("it's louder", "")):
        for id in HELD_OUT:
            path = tmp_path / "what I heard" / system / f"{id}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(word)
    done = trained.run(
        "--stage", "4", "--config", str(trained.config), "--infer_output_dir", str(result),
        "it's louder", "--texts", "my texts", "--transcripts", "what I heard",
        "--speaker_encoder", "my_voices:encode", "--metrics", "energy_rmse,wer,similarity",
        "--report_dir", "my report", "--page", "no", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "my report").glob("*.*")] == ["comparison.json"]
    (pair,) = json.loads((tmp_path / "my report" / "comparison.json").read_text())["comparisons"]
    assert (pair["first"], pair["second"]) == (trained.experiment.name, "it's louder")
    assert pair["differences"]["similarity"]["mean"] == pytest.approx(0)
    # one of the words of each text was heard, and none of them
    assert -20 < pair["differences"]["wer"]["mean"] < 0
    assert f"{trained.experiment.name} - it's louder" in done.stdout


def test_stage_4_hears_texts_of_the_user_without_recordings(trained, tmp_path):
    pytest.importorskip("jiwer")
    (tmp_path / "my_asr.py").write_text(PLUGINS)
    out, hearing = ("--infer_output_dir", "my out"), ("--recogniser", "my_asr:hear")
    text = ("--infer_text", "Two blue birds.")
    for flags in (text, ("--stage", "4", *hearing, "--checks", "silence")):
        done = trained.speak(*out, *flags, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "my out" / "single" / "scores.json").read_text())
    assert report["scores"]["wer"]["mean"] == pytest.approx(100 / 3, abs=1e-4)
    assert "wer_recorded" not in report["scores"]
    assert report["skipped"]["mcd"].startswith("there are no recordings to compare with")
    assert (tmp_path / "my out" / "single" / "report.html").is_file()


def test_metadata_holds_every_word_and_adds_up(trained):
    line = next(x for x in lines_of(trained.experiment / "result") if x["id"] == "LJ011-0202")
    words = " ".join(word["word"].lower() for word in line["words"])
    assert words == "the uncle claimed her the husband resisted"
    frames = soundfile.info(trained.experiment / "result" / line["file"]).frames
    assert line["seconds"] == pytest.approx(frames / 22050, abs=1e-3)
    total = sum(phone["duration_s"] for phone in line["phones"])
    assert total == pytest.approx(line["seconds"], abs=0.01)
    assert line["speaker"] == "LJSpeech"


def test_a_moved_experiment_speaks_a_text_byte_by_byte_without_the_data(trained, tmp_path):
    (trained.folder / "data").rename(tmp_path / "data elsewhere")
    text = """He said: "it's $5 `touch x` $(touch x) *", 'a'  b\nand went."""
    flags = ("--infer_text", text, "--infer_output_dir", "./out put")
    done = trained.speak(*flags, model="./ckpts/tiny voice", cwd=trained.folder)
    (tmp_path / "data elsewhere").rename(trained.folder / "data")
    assert done.returncode == 0, done.stderr
    (line,) = lines_of(trained.folder / "out put" / "single")
    assert line["text"] == text
    assert not (trained.folder / "x").exists()


def test_a_text_file_is_spoken_line_by_line_and_a_bad_line_is_named(trained, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("Good day.\n...\nGood night.\n", encoding="utf-8")
    flags = ("--infer_text_file", str(texts), "--infer_output_dir", str(tmp_path))
    done = trained.speak(*flags, "--duration_control", "1.5")
    assert done.returncode == 1
    assert "1 of 3 texts could not be synthesised:\n  text-0002: " in done.stderr
    assert "Traceback" not in done.stderr
    assert [line["text"] for line in lines_of(tmp_path / "single")] == ["Good day.", "Good night."]


def test_golden_test_is_spoken_with_one_checkpoint(trained, tmp_path):
    checkpoint = next((trained.experiment / "checkpoints").glob("step-*"))
    batch = ("--infer_mode", "batch", "--infer_dataset", "LJSpeech-mini")
    voice = ("--infer_expt_dir", str(checkpoint), "--infer_output_dir", str(tmp_path))
    done = trained.run("--stage", "3", *batch, "--infer_testing_set", "golden_test", *voice)
    assert done.returncode == 0, done.stderr
    assert len(lines_of(tmp_path)) == 1


@pytest.mark.parametrize("vocoder", VOCODERS)
def test_a_vocoder_learns_from_predicted_mels_and_speaks(trained, tmp_path, vocoder):
    recipe, corpus = EGS / "vocoder" / vocoder, {"LJSpeech-mini": {"format": "ljspeech"}}
    data = str(trained.folder / f"data of {vocoder}")
    config = write_config(
        trained.folder / f"{vocoder}.json",
        recipe / "exp_config_finetune.json",
        dataset="LJSpeech-mini",
        preprocess={"processed_dir": data, "corpus": corpus},
        model=tiny_model(vocoder.lower()),
        train=TWO_UPDATES | {"init_from": ""},
    )
    for stage, flags in (("1", ("--from_acoustic", str(trained.experiment))), ("2", ())):
        words = ("--stage", stage, "--config", str(config), "--name", f"tuned_{vocoder}")
        done = trained._replace(script=recipe / "run.sh").run(*words, *flags)
        assert done.returncode == 0, done.stderr
    tuned = str(trained.folder / "ckpts" / f"tuned_{vocoder}")
    flags = ("--infer_output_dir", str(tmp_path), "--vocoder_dir", tuned)
    spoken = trained.speak("--infer_text", "Good day.", *flags)
    assert spoken.returncode == 0, spoken.stderr
    (line,) = lines_of(tmp_path / "single")
    wav, _ = soundfile.read(tmp_path / "single" / line["file"])
    assert line["vocoder"] == tuned
    assert np.isfinite(wav).all()
    assert len(wav) == pytest.approx(line["seconds"] * 22050, abs=2)  # written to 0.1 ms
