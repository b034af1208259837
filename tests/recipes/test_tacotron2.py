"""The Tacotron 2 recipe from a corpus to speech, as a user calls it."""

import pytest
import soundfile

from tests.recipes.runs import EGS, HELD_OUT, Place, lines_of, prepare, train_and_speak

RECIPE = EGS / "tts" / "Tacotron2"


TINY = {
    "model": {
        "encoder": {"hidden": 16},
        "decoder": {
            "prenet_size": 16,
            "attention_lstm_size": 16,
            "decoder_lstm_size": 16,
            "attention_size": 8,
            "n_frames_per_step": 3,
        },
        "postnet": {"channels": 16},
        "guided_attention": 1.0,
    },
    "train": {"batch_size": 2, "max_steps": 2, "valid_samples": 1, "dataloader": {"num_worker": 0}},
    "inference": {"griffin_lim_iterations": 1, "attention_attempts": 1, "save_plots": True},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    return train_and_speak(prepare(tmp_path_factory.mktemp("a recipe"), RECIPE, **TINY))


def test_three_stages_give_speech_and_a_plot_for_every_test_sentence(trained):
    result = trained.experiment / "result"
    lines = lines_of(result)
    assert [line["id"] for line in lines] == sorted(HELD_OUT)
    for line in lines:
        info = soundfile.info(result / line["file"])
        assert (info.samplerate, info.channels) == (22050, 1)
        ends = [phone["start_s"] + phone["duration_s"] for phone in line["phones"]]
        assert ends[-1] == pytest.approx(info.duration, abs=1e-3)
        assert {*line["attention"]} == {"focus", "skipped", "repeated", "stopped"}
        assert (result / f"{line['id']}.png").is_file()


def test_controls_that_the_model_lacks_are_refused(trained):
    done = trained.run(
        "--stage", "3", "--infer_expt_dir", str(trained.experiment), "--infer_mode", "single",
        "--infer_text", "No.", "--pitch_control", "1.2", cwd=trained.folder,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Tacotron2 has no control of pitch" in done.stderr
