import importlib
from pathlib import Path

import pytest
import torch

from models.programs.benchmark import run as benchmark
from models.programs.benchmark.run import Options, generated_config, run_benchmark, synthesis_step
from models.training.data import ProcessRank, collect_assets, load_data
from processors.dataset.sampler import Draw
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder
from tests.models.training.small_tasks import make_processed, write_voice_config
from utils.errors import InputError

CPU = torch.device("cpu")
FEW = ("train.synthetic_utterances=8", "train.batch_size=2", "train.mixed_precision=fp32")


def utterance(model):
    config = generated_config(model, small=True)
    data = load_data(config, collect_assets(config), ProcessRank(), CPU)
    return data.validation[Draw(0, 0)]


@pytest.mark.parametrize("model", benchmark.known_models())
def test_every_model_synthesises_all_frames_with_random_weights(model):
    work = synthesis_step(generated_config(model, small=True), CPU, "fp32", longest=30)()
    assert 15 <= work.frames <= 30
    assert work.audio_s == work.frames * 256 / 22050


def test_a_batch_has_padding():
    config = generated_config("hifigan", ("train.synthetic_utterances=100",), small=True)
    work = synthesis_step(config, CPU, "bf16", batch_size=2)()
    assert work.utterances == 2
    assert work.frames < work.cells


def test_lengths_are_new_or_repeated():
    config = generated_config("hifigan", ("train.synthetic_utterances=100",), small=True)
    for repeated in (False, True):
        step = synthesis_step(config, CPU, "fp32", repeated=repeated)
        assert (len({step().frames for _ in range(4)}) == 1) is repeated


def test_a_cut_utterance_keeps_whole_phones():
    item = utterance("fastspeech2")
    short = benchmark.cut(item, 100)
    assert int(short.durations.sum()) == short.mel.shape[1] <= 100
    assert len(short.phone_ids) == len(short.durations)
    assert torch.equal(benchmark.cut(item, 0).phone_ids, item.phone_ids)


def test_without_durations_frames_are_shared_equally():
    item = utterance("tacotron2")
    durations = benchmark.durations_of(item)
    assert int(durations.sum()) == item.mel.shape[1]
    assert int(durations.max() - durations.min()) <= 1


def test_an_update_counts_its_work():
    config = generated_config("fastspeech2", FEW, small=True)
    work = benchmark.training_step(config, CPU)()  # the longest utterance is in the first update
    assert 869 <= work.frames <= work.cells
    assert work.audio_s == work.frames * 256 / 22050
    assert work.utterances >= 1


def test_two_precisions_train_in_one_process():
    in_bf16 = generated_config("freevgl", ("train.batch_size=2",), small=True)
    in_fp32 = generated_config("freevgl", FEW, small=True)
    steps = [benchmark.training_step(config, CPU) for config in (in_bf16, in_fp32)]
    assert all(step().frames > 0 for step in steps)


def test_two_settings_are_compared_with_the_results_of_both():
    compared = ["train.cut_mel_frame=16", "train.cut_mel_frame=32"]
    sizes = {"batch_size": 2, "steps": 6, "small": True}
    options = Options(model=["freevgl"], mode=["training"], compare=compared, **sizes)
    first, second, pair = run_benchmark(options)
    assert [first.setting, second.setting] == options.compare
    # as many utterances, of twice the frames
    n_frames = [r.figures["frames/s"] / r.figures["utterances/s"] for r in (first, second)]
    assert n_frames == pytest.approx([16, 32])
    assert (pair.mode, pair.model) == ("comparison", "freevgl, training")
    assert pair.setting == "train.cut_mel_frame=16 / train.cut_mel_frame=32"
    ratio, low, high, *_, n = pair.figures.values()
    assert low <= ratio <= high
    assert n == 6


def test_data_of_stage_1_are_measured(tmp_path):
    make_processed(tmp_path / "data" / "mini")
    config = write_voice_config(tmp_path)
    options = Options(mode=["training", "inference"], config=config, warm_up=0, steps=2)
    training, inference = run_benchmark(options)
    assert (training.model, training.figures["batch"]) == ("fastspeech2", 2.5)  # of five
    assert inference.figures["real-time factor"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(config=Path("a.json"), model=["hifigan"]), "leave out --model"),
        (Options(model=["hifigam"]), r"no model 'hifigam'; did you mean hifigan\?"),
        (Options(mode=["speech"], compare=["threads=1", "threads=2"]), "add one of them"),
        (Options(mode=["training"], small=True, compare=["lengths=new", "lengths=repeated"]),
         "lengths=repeated: lengths are of synthesis"),
        (Options(compare=["threads=1", "precision=bf16"]), "expected two values of one key"),
        (Options(compare=["bf16", "fp32"]), "--compare bf16 fp32: expected two values of one key"),
        (Options(compare=["speed=2", "speed=3"]), "--compare speed=2: expected precision=..., thr"),
        (Options(compare=["threads=0", "threads=1"]), "--compare threads=0: expected"),
        (Options(model=["tacotron2"], mode=["inference"], precision=["bf16"], small=True),
         "precision=bf16: Tacotron2 in inference has fp32, fp16"),
        (Options(model=["tacotron2"], mode=["training"], precision=["int8"], small=True),
         "precision=int8: training on cpu has fp32, bf16"),
    ],
)  # fmt: skip
def test_options_without_an_effect_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        list(run_benchmark(options))


def test_of_several_precisions_those_a_model_lacks_are_left_out():
    sizes = {"small": True, "longest": 8, "warm_up": 0, "steps": 1}
    wanted = {"model": ["tacotron2"], "mode": ["inference"], "precision": ["fp32", "bf16"]}
    options = Options(**wanted, **sizes, overrides=["train.synthetic_utterances=20"])
    assert [result.setting for result in run_benchmark(options)] == ["precision=fp32"]


def test_every_model_has_its_full_size_on_the_lengths_of_ljspeech_and_a_tiny_one():
    assert benchmark.known_models().keys() == {
        "fastspeech2", "fastpitch", "flowspeech", "matcha", "tacotron2",
        "hifigan", "waveglow", "freevgl", "vocos",
    }  # fmt: skip
    for model, task in benchmark.known_models().items():
        full, tiny = generated_config(model), generated_config(model, small=True)
        assert (tiny.task, tiny.model_type) == (full.task, full.model_type)
        assert (full.task, full.model_type.lower()) == (task, model)
        assert full.train.synthetic_utterances == 13092
        assert (tiny.train.synthetic_utterances, tiny.preprocess.mel.n_mels) == (24, 20)


def test_speech_is_measured_in_parts(tmp_path):
    voice, vocoder = make_voice(tmp_path / "voice"), make_vocoder(tmp_path / "vocoder")
    files = {"voice": str(voice), "vocoder_dir": str(vocoder)}
    options = Options(mode=["speech"], warm_up=0, steps=2, **files)
    results = {result.setting: result.figures for result in run_benchmark(options)}
    factors = {name: figures["real-time factor"] for name, figures in results.items()}
    text, whole, first = factors.values()
    assert list(factors) == ["text", "whole", "first sound"]
    assert 0 < text < first < 1.5 * whole


def test_start_up_is_that_of_fresh_interpreters(monkeypatch):
    for statement in benchmark._STATEMENTS:
        importlib.import_module(statement.removeprefix("import "))  # there are such modules
    monkeypatch.setattr("models.programs.benchmark.run._STATEMENTS", ("pass", "import numpy"))
    empty, numpy = run_benchmark(Options(mode=["start-up"], warm_up=0, steps=1))
    assert (empty.setting, numpy.setting) == ("pass", "import numpy")
    assert 0 < empty.figures["p50, s"] < numpy.figures["p50, s"]
