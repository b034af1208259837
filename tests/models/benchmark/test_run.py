from dataclasses import replace
from pathlib import Path

import pytest

from models.benchmark.configs import generated_config, known_models
from models.benchmark.run import VOICE, Options, parse_setting, run_benchmark
from tests.models.training.small_tasks import make_processed, write_voice_config
from utils.errors import InputError


def test_a_setting_has_keys_of_its_own_and_those_of_the_configuration():
    setting = parse_setting("precision=bf16 train.adam.lr=0.1 batches=random", "fp32", 2)
    assert (setting.precision, setting.threads, setting.random_batches) == ("bf16", 2, True)
    assert setting.overrides == ("train.adam.lr=0.1",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bf16", "expected key=value"),
        ("speed=2", "expected precision, threads, batches, or a key"),
        ("precision=int4", "precision must be one of fp32, bf16"),
        ("batches=long", "batches must be buckets or random"),
        ("threads=0", "threads must be 1 or more"),
    ],
)
def test_wrong_settings_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_setting(text, "fp32", 1)


def test_two_settings_are_compared_with_the_results_of_both():
    options = Options(
        models=("freevgl",),
        modes=("training",),
        batch_size=2,
        steps=6,
        small=True,
        compared=("train.cut_mel_frame=16", "train.cut_mel_frame=32"),
    )
    report = run_benchmark(options, "bench")
    assert [one.of.setting for one in report.results] == list(options.compared)
    first, second = report.results
    assert second.frames_per_s * second.cpu_s.mean / (first.frames_per_s * first.cpu_s.mean) == (
        pytest.approx(2)
    )
    (comparison,) = report.comparisons
    ratio = comparison.ratio.cpu
    assert ratio.low <= ratio.mean <= ratio.high
    assert ratio.n == 6
    assert report.environment["threads"] == "1"


def test_data_of_stage_1_are_measured(tmp_path):
    make_processed(tmp_path / "data" / "mini")
    options = Options(
        modes=("training", "inference"),
        config=write_voice_config(tmp_path),
        random_weights=True,
        warm_up=0,
        steps=2,
    )
    training, inference = run_benchmark(options, "bench").results
    assert (training.of.model, training.of.data) == ("fastspeech2", "mini")
    assert training.of.batch == "3"
    assert inference.of.weights == "random"
    assert inference.real_time_factor > 0


def test_a_trained_model_predicts_its_durations():
    options = Options(
        models=("fastspeech2",),
        modes=("inference",),
        checkpoints={"fastspeech2": str(VOICE)},
        longest=30,
        warm_up=0,
        steps=1,
    )
    (result,) = run_benchmark(options, "bench").results
    assert result.of.weights == str(VOICE)
    assert result.frames_per_s > 0


def test_random_weights_must_be_asked_for():
    with pytest.raises(InputError, match="inference of hifigan: name a trained model"):
        run_benchmark(Options(models=("hifigan",), modes=("inference",), small=True), "bench")


def test_precisions_that_a_model_lacks_are_left_out():
    options = Options(
        models=("tacotron2",), modes=("inference",), precisions=("bf16", "int8"), longest=30,
        small=True, random_weights=True, warm_up=0, steps=1,
    )  # fmt: skip
    (result,) = run_benchmark(options, "bench").results
    assert result.of.setting == "precision=int8"
    with pytest.raises(InputError, match="precision=bf16: Tacotron2 has fp32, fp16, int8"):
        run_benchmark(replace(options, precisions=("bf16",)), "bench")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(config=Path("a.json"), models=("hifigan",)), "leave out --model"),
        (Options(checkpoints={"hifigam": "a"}), r"no model 'hifigam'; did you mean hifigan\?"),
        (Options(modes=("inference",), compared=("a=1", "a=2")), "setting 'a=1': expected precis"),
        (Options(modes=("speech",), compared=("threads=1", "threads=2")), "add one of them"),
        (
            Options(
                models=("fastspeech2",),
                modes=("inference",),
                checkpoints={"fastspeech2": str(VOICE)},
                overrides=("model.hidden=8",),
            ),
            "model.hidden=8: a model of --checkpoint is measured as it was trained",
        ),
    ],
)
def test_options_without_an_effect_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        run_benchmark(options, "bench")


def test_batches_are_not_a_setting_of_inference():
    options = Options(
        models=("hifigan",), modes=("inference",), small=True, random_weights=True,
        compared=("batches=random", "batches=buckets"),
    )  # fmt: skip
    with pytest.raises(InputError, match="batches are of training"):
        run_benchmark(options, "bench")


def test_an_unknown_model_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"no model 'hifigam'; did you mean hifigan\?"):
        generated_config("hifigam")
    options = Options(models=("hifigam",), modes=("inference",))  # not that weights are missing
    with pytest.raises(InputError, match=r"did you mean hifigan\?"):
        run_benchmark(options, "bench")
    assert set(known_models()) == {
        "fastspeech2", "fastpitch", "tacotron2", "hifigan", "waveglow", "freevgl",
    }  # fmt: skip


def test_speech_has_its_parts():
    options = Options(modes=("speech",), small=True, warm_up=1, steps=1)
    (result,) = run_benchmark(options, "bench").results
    parts = result.parts
    assert result.real_time_factor == pytest.approx(parts["whole"], rel=0.1)
    assert parts["text"] + parts["acoustic"] + parts["vocoder"] == pytest.approx(
        parts["whole"], rel=0.5
    )
    assert 0 < parts["first_s"] <= parts["last_s"]
    assert 3 < parts["audio_s"] < 10
