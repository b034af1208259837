import logging
import math
import random
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from models.base.task import MetricTerm, Sample
from models.training.observing import scoring as observing
from models.training.observing.scoring import PeriodicScoring, build_scoring, choose_utterances
from modules.mel import MelConfig
from processors.audio.files import AudioError
from processors.dataset.batch import VocoderBatch
from processors.metrics.families.speech import score_distillmos
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.records import Copy, MetricValue
from processors.metrics.registry import METRICS
from processors.metrics.signals.acoustic_features import encode_speaker
from processors.records import TimedPhone
from tests.models.training import small_tasks
from tests.models.training.small_tasks import PREPROCESS, TEXT, train_config, write_corpus
from tests.models.vocoder import small_hifigan
from tests.models.vocoder.small_hifigan import gan_config, make_recordings, make_segments
from tests.processors.metrics.packages import skip_without
from utils.errors import InputError
from utils.seed import seed_everything

RATE = 16000
MEL = MelConfig(sample_rate=RATE, f_max=8000)


def tone(seed=0, seconds=0.5):
    """A harmonic tone that glides."""
    times = np.arange(round(seconds * RATE)) / RATE
    phase = 2 * np.pi * (120 + 10 * seed + 40 * times) * times
    return (0.1 * sum(np.sin(k * phase) / k for k in range(1, 9))).astype(np.float32)


def utterance(seed, batch="a batch"):
    return batch, LabelledSpeech(tone(seed), RATE, "", "", id=f"s{seed}")


UTTERANCES = [utterance(seed) for seed in range(4)]


def scoring(*metrics, utterances=UTTERANCES, seconds=10.0):
    return PeriodicScoring(utterances, metrics, MEL, seconds)


@pytest.fixture
def clock(monkeypatch):
    """Sets the seconds since its start that each scoring reads, one after another."""

    def set_times(*times):
        readings = iter([reading for row in times for reading in (0.0, *row)])
        # not in `time` itself, which the loops of servers read in other threads
        clock = SimpleNamespace(monotonic=readings.__next__)
        monkeypatch.setattr("models.training.observing.scoring.time", clock)

    return set_times


def set_score(monkeypatch, name, score):
    monkeypatch.setitem(METRICS, name, replace(METRICS[name], score=score))


class Speaker:
    """Gives the next recording, changed."""

    def __init__(self, change=lambda wav: wav, n=4):
        self.change = change
        self.n = n
        self.batches = []

    def __call__(self, batch):
        wav = self.change(tone(len(self.batches) % self.n))
        self.batches.append(batch)
        return Sample("", {"synthesised": torch.from_numpy(wav)}, {})


def test_speech_that_is_the_recording_has_the_best_scores():
    found = scoring("mcd", "f0rmse_cents", "v_uv_f1", seconds=1000.0).run(Speaker())
    assert found.values == pytest.approx({"mcd": 0, "f0rmse_cents": 0, "v_uv_f1": 1})
    assert found.n == 4


def test_scores_are_means_over_the_utterances_by_their_weights(monkeypatch):
    """Those without a value, or one that is no number, do not count."""
    some = MetricValue(1.0, 1), None, MetricValue(4.0, 2), MetricValue(math.nan)
    values = iter([*some, *[None] * 4])
    set_score(monkeypatch, "v_uv_f1", lambda _pair: next(values))
    scorer = scoring("v_uv_f1")
    assert scorer.run(Speaker()).values == {"v_uv_f1": 3.0}
    assert math.isnan(scorer.run(Speaker()).values["v_uv_f1"])


def test_the_same_speech_has_the_same_scores():
    scorer = scoring("mcd", utterances=UTTERANCES[:2])
    assert scorer.run(Speaker(n=2)).values == scorer.run(Speaker(n=2)).values


def test_resynthesis_is_compared_sample_by_sample():
    batch = VocoderBatch(("s0",), None, None, None)
    wav_hat = 0.5 * tone()[: 31 * 256]
    found = scoring("mel_l1", utterances=[utterance(0, batch)]).run(Speaker(lambda _wav: wav_hat))
    expected = METRICS["mel_l1"].score(Copy(tone()[: 31 * 256], wav_hat, MEL))
    assert found.values["mel_l1"] == expected.value


def test_utterances_beyond_the_budget_are_dropped_for_good_and_logged_once(clock, caplog):
    utterances = [utterance(seed) for seed in range(5)]
    clock((4, 8, 12, 12), (4, 8, 9), (4, 8, 9))
    scorer = scoring("mcd", utterances=utterances)
    with caplog.at_level(logging.INFO):
        found = [scorer.run(Speaker(n=5)) for _ in range(3)]
    assert [one.n for one in found] == [3, 3, 3]
    assert [one.seconds for one in found] == [12, 9, 9]
    assert [recorded.id for _, recorded in scorer.utterances] == ["s0", "s1", "s2"]
    assert caplog.messages == [
        "scores: train.score_seconds 10 is enough for 3 of 5 utterances; the others are left out "
        "for the rest of this run"
    ]


def test_one_utterance_is_scored_however_long_it_takes(clock):
    clock((99, 99), (100, 100))
    scorer = scoring("mcd")
    assert [scorer.run(Speaker()).n for _ in range(2)] == [1, 1]


def test_the_utterances_are_the_same_each_time():
    batches = [f"batch {n}" for n in range(3)]
    scorer = scoring("mcd", utterances=[utterance(n, batch) for n, batch in enumerate(batches)])
    speaker = Speaker()
    scorer.run(speaker)
    scorer.run(speaker)
    assert speaker.batches == batches * 2


@pytest.mark.parametrize(
    ("kind", "is_bug"), [(RuntimeError, True), (AudioError, False), (ModuleNotFoundError, False)]
)
def test_a_failure_is_logged_once_and_training_continues(kind, is_bug, caplog):
    """With a traceback, unless a file is at fault or a package is missing."""

    def fail(_batch):
        raise kind("a.wav: fault")

    scorer = scoring("mcd")
    with caplog.at_level(logging.INFO):
        assert [scorer.run(fail) for _ in range(3)] == [None] * 3
    assert caplog.messages == ["no scores for the rest of this run: a.wav: fault"]
    assert ("Traceback" in caplog.text) == is_bug


def test_audio_that_is_not_finite_has_no_score():
    found = scoring("mcd", "v_uv_f1").run(Speaker(lambda wav: wav * math.nan))
    assert all(math.isnan(value) for value in found.values.values())


def test_speech_that_never_ends_is_cut_before_it_is_scored(monkeypatch):
    spoken = []
    set_score(monkeypatch, "v_uv_f1", lambda pair: spoken.append(pair.synthesised))
    scoring("v_uv_f1", utterances=UTTERANCES[:1]).run(Speaker(lambda wav: np.tile(wav, 100)))
    assert len(spoken[0].wav) == 3 * len(tone()) + RATE


def test_phones_of_both_reach_the_metrics(monkeypatch):
    pairs = []
    set_score(monkeypatch, "v_uv_f1", pairs.append)
    phones = (TimedPhone("AA1", 0.0, 0.5),)
    recorded = LabelledSpeech(tone(), RATE, "", "", phones)
    spoken = (TimedPhone("AA1", 0.0, 0.4),)
    sample = Sample("", {"synthesised": torch.from_numpy(tone())}, {}, spoken)
    scoring("v_uv_f1", utterances=[("a batch", recorded)]).run(lambda _batch: sample)
    assert (pairs[0].recorded.phones, pairs[0].synthesised.phones) == (phones, spoken)
    assert not pairs[0].same_timing


def config_of(task="tts", **changes):
    train = train_config(**({"score_steps": 5} | changes))
    return SimpleNamespace(task=task, train=train, preprocess=PREPROCESS)


@pytest.mark.parametrize(
    ("metrics", "fault"),
    [
        (("mcdd",), r"mcdd is no metric; did you mean mcd\? \(known: cer, "),
        (("mel_l1",), "mel_l1 needs resynthesised recordings; an acoustic model"),
    ],
)
def test_metrics_that_do_not_fit_the_model_are_refused(metrics, fault):
    with pytest.raises(InputError, match=rf"train\.score_metrics: {fault}"):
        observing.check_score_metrics(config_of(score_metrics=metrics))


def test_vocoders_may_be_scored_by_resynthesis_and_by_pairs():
    metrics = ("mel_l1", "mcd", "mcdd")  # only the last one is refused
    with pytest.raises(InputError, match=r"^train\.score_metrics: mcdd is no metric"):
        observing.check_score_metrics(config_of("vocoder", score_metrics=metrics))


def test_pretrained_models_score_as_in_stage_4():
    skip_without("distillmos", "similarity")
    observing.check_score_metrics(config_of(score_metrics=("distillmos", "similarity")))
    recorded = LabelledSpeech(tone(seconds=1.5), RATE, "", "")
    spoken = recorded.wav[: 5 * RATE // 4]
    scorer = scoring("distillmos", "similarity", utterances=[(1, recorded)])
    values = scorer.run(lambda _: Sample("", {"synthesised": torch.from_numpy(spoken)}, {})).values
    expected = score_distillmos(replace(recorded, wav=spoken)).value
    assert values["distillmos"] == pytest.approx(expected)
    vectors = [encode_speaker(wav, RATE) for wav in (recorded.wav, spoken)]
    assert values["similarity"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)


def without(monkeypatch, *packages):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in packages else name)


@pytest.fixture
def _utterances(monkeypatch):
    choose = "models.training.observing.scoring.choose_utterances"
    monkeypatch.setattr(choose, lambda *_: UTTERANCES)


@pytest.mark.usefixtures("_utterances")
def test_metrics_whose_packages_are_missing_are_named_in_one_line(monkeypatch, caplog):
    without(monkeypatch, "pesq", "xls_r_sqa")
    config = config_of("vocoder", score_metrics=("pesq", "mcd", "distillmos"))
    with caplog.at_level(logging.INFO):
        scorer = build_scoring(config, None)
    assert scorer.metrics == ["mcd"]
    assert caplog.messages == [
        "no scores pesq, distillmos during training: pip install pesq xls_r_sqa",
        "scores every 5 updates, 10 s at most: mcd of 4 validation utterances",
    ]


@pytest.mark.usefixtures("_utterances")
def test_without_any_metric_there_are_no_scores_and_one_line(monkeypatch, caplog):
    without(monkeypatch, "pesq")
    with caplog.at_level(logging.INFO):
        assert build_scoring(config_of("vocoder", score_metrics=("pesq",)), None) is None
    assert caplog.messages == ["no scores pesq during training: pip install pesq"]


def test_without_recordings_there_are_no_scores_and_one_line(monkeypatch, caplog):
    def choose(_config, _data):
        raise ModuleNotFoundError("No module named 'soundfile'")

    monkeypatch.setattr("models.training.observing.scoring.choose_utterances", choose)
    with caplog.at_level(logging.INFO):
        assert build_scoring(config_of(score_metrics=("mcd",)), None) is None
    assert caplog.messages == ["no scores during training: No module named 'soundfile'"]


@pytest.mark.parametrize("change", [{"score_steps": 0}, {"score_metrics": ()}])
def test_nothing_is_logged_without_scores_in_the_config(change, caplog):
    with caplog.at_level(logging.INFO):
        assert build_scoring(config_of(**change), None) is None
    assert caplog.messages == []


SAMPLE_RATE, HOP = PREPROCESS.sample_rate, PREPROCESS.hop_length


def utterance_config(**changes):
    train = train_config(**({"score_utterances": 3} | changes))
    return SimpleNamespace(train=train, preprocess=PREPROCESS)


@pytest.fixture
def store(tmp_path):
    return small_tasks.make_processed(tmp_path / "data")


@pytest.fixture
def data(store):
    return small_tasks.make_data(store, train_config())


def test_an_acoustic_model_is_compared_with_the_span_of_its_features(tmp_path, store, data):
    store.starts[:] = 40
    write_corpus(tmp_path, store, lead=40)
    batch, recorded = choose_utterances(utterance_config(), data)[0]
    features = store.read(recorded.id)
    T = features.mel.shape[1]
    noise = np.random.default_rng(store.index_of(recorded.id)).normal(0, 0.1, 40 + (7 + 60) * HOP)
    assert batch.ids == (recorded.id,)
    assert np.allclose(recorded.wav, noise[40 : 40 + T * HOP], atol=2 / 32768)
    assert (recorded.sample_rate, recorded.text, recorded.language) == (SAMPLE_RATE, TEXT, "en-gb")
    assert [phone.name for phone in recorded.phones] == list(features.phones)
    assert recorded.phones[-1].end_s == pytest.approx(T * HOP / SAMPLE_RATE)


def test_the_utterances_are_the_same_in_a_random_order(tmp_path, store, data):
    write_corpus(tmp_path, store)
    configs = (utterance_config(score_utterances=n) for n in (99, 2))
    chosen = (choose_utterances(config, data) for config in configs)
    all_of_them, some = ([recorded.id for _, recorded in utterances] for utterances in chosen)
    assert sorted(all_of_them) == list(store.ids[-4:])
    assert all_of_them != sorted(all_of_them)  # random, but fixed
    assert some == all_of_them[:2]


def test_a_recording_that_is_missing_is_left_out_and_named(tmp_path, store, data, caplog):
    write_corpus(tmp_path, store, written=lambda id: id != store.ids[-1])
    utterances = choose_utterances(utterance_config(score_utterances=4), data)
    assert sorted(recorded.id for _, recorded in utterances) == list(store.ids[-4:-1])
    (line,) = caplog.messages
    assert line.startswith("left out of the scores during training: 1 of 4 validation utterances: ")
    assert f"{store.ids[-1]}.wav: cannot be opened" in line


def test_without_any_recording_the_first_that_is_missing_is_named(tmp_path, store, data):
    write_corpus(tmp_path, store, written=lambda _id: False)
    with pytest.raises(AudioError, match=r"\.wav: cannot be opened"):
        choose_utterances(utterance_config(score_utterances=4), data)


def test_without_the_manifest_of_stage_1_there_are_no_recordings(data):
    with pytest.raises(InputError, match=r"utt-\d+ is not in .*manifest\.jsonl"):
        choose_utterances(utterance_config(), data)


def test_without_validation_data_there_is_nothing_to_score(store, data):
    data.validation.ids = ()
    assert choose_utterances(utterance_config(), data) == []


def test_a_vocoder_needs_no_corpus_and_uses_texts_if_there_are_any(tmp_path):
    store = make_recordings(tmp_path / "data")
    data = make_segments(store, gan_config())
    _, alone = choose_utterances(utterance_config(), data)[0]
    write_corpus(tmp_path, store)
    shutil.rmtree(tmp_path / "corpus")
    _, first = choose_utterances(utterance_config(), data)[0]
    wav = small_hifigan.make_recording(int(first.id[-3:])).wav / np.float32(32768)
    assert np.array_equal(first.wav, wav)
    assert np.array_equal(alone.wav, wav)
    assert (alone.text, first.text) == ("", TEXT)


def test_the_text_of_a_recording_that_is_cut_is_unknown(tmp_path):
    store = make_recordings(tmp_path / "data")
    write_corpus(tmp_path, store)
    data = make_segments(store, gan_config())
    data.validation.lengths[:] = 9
    _, first = choose_utterances(utterance_config(), data)[0]
    assert first.text == ""
    assert len(first.wav) == 9 * HOP


def test_validation_is_a_mean_over_elements_and_restores_the_state(store):
    task = small_tasks.TinyTask(dropout=0.5)
    task.networks["model"].train()
    generator = torch.get_rng_state()
    batches = [small_tasks.make_data(store, train_config(batch_size=n)).valid for n in (1, 9)]
    loss, losses, _ = observing.validate(task, batches[0], torch.device("cpu"))
    together, *_ = observing.validate(task, batches[1], torch.device("cpu"))
    assert loss == pytest.approx(losses["mel"] + 0.1 * losses["duration"])
    assert loss == pytest.approx(together, rel=1e-6)
    assert task.networks["model"].training
    assert torch.equal(torch.get_rng_state(), generator)


class WithMetrics(small_tasks.TinyTask):
    """The metric of an item with an even number is that number; odd ones have none."""

    def validation_step(self, batch):
        numbers = [int(id[-3:]) for id in batch.ids]
        even = [number for number in numbers if number % 2 == 0]
        metrics = {"even": MetricTerm(sum(even), len(even)), "none": MetricTerm(0.0, 0)}
        return super().validation_step(batch) | metrics


def test_metrics_are_means_over_the_items_that_have_one_and_no_part_of_the_loss(store):
    data = small_tasks.make_data(store, train_config(batch_size=1))
    loss, losses, metrics = observing.validate(WithMetrics(), data.valid, torch.device("cpu"))
    assert metrics == {"even": (10 + 12) / 2}
    assert losses.keys() == {"mel", "duration"}
    assert loss == observing.validate(small_tasks.TinyTask(), data.valid, torch.device("cpu")).loss


def test_validation_without_batches_gives_no_number():
    loss, losses, metrics = observing.validate(small_tasks.TinyTask(), [], torch.device("cpu"))
    assert math.isnan(loss)
    assert losses == metrics == {}


def test_a_validation_that_fails_leaves_networks_in_training_mode_as_well():
    network = small_tasks.TinyTask().networks["model"]

    def fail():
        with observing.eval_mode([network]):
            assert not network.training
            assert not torch.is_grad_enabled()
            raise MemoryError

    with pytest.raises(MemoryError):
        fail()
    assert network.training
    assert torch.is_grad_enabled()


def test_random_numbers_after_evaluation_are_those_without_it():
    def draw():
        return random.random(), np.random.rand(), float(torch.rand(1))  # noqa: NPY002

    seed_everything(5)
    expected = draw()
    seed_everything(5)
    with observing.eval_mode([]):
        drawn = [draw() for _ in range(3)]
    assert drawn[0] == draw() == expected
