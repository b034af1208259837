import json
from dataclasses import replace

import pytest

from config.preprocess import CorpusConfig, PreprocessConfig, SplitConfig
from config.schema import Config, InferenceConfig
from config.text import TextConfig
from config.train import AdamConfig, DataLoaderConfig, ProfileConfig, ScheduleConfig, TrainConfig
from models.base.registry import load_config
from models.training.run import plain_config

TRAIN = TrainConfig(max_steps=1)
OF_SPEAKERS = replace(TRAIN, trained="speakers")
FALLING = ScheduleConfig(end_lr=1.0)
MIXING, HALF = InferenceConfig(p_arpabet=0.0), InferenceConfig(p_arpabet=0.5)
CONFIG = Config(
    task="tts",
    model_type="FastSpeech2",
    dataset=("A",),
    dataset_path={"A": "a", "B": "b"},
    log_dir="ckpts",
    model=None,
    preprocess=PreprocessConfig(corpus={"A": CorpusConfig(), "B": CorpusConfig()}),
)


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        (TRAIN, "batch_size", 0, "batch_size is 0, expected 1 or more"),
        (TRAIN, "gradient_accumulation_step", 0, "expected 1 or more"),
        (TRAIN, "keep_last", 0, "expected 1 or more"),
        (TRAIN, "max_bad_steps", 0, "expected 1 or more"),
        (TRAIN, "cut_mel_frame", -1, "cut_mel_frame is -1, expected 0 or more"),
        (TRAIN, "crop_phones", -1, "crop_phones is -1, expected 0 or more"),
        (replace(TRAIN, compile="buckets"), "crop_phones", 9, "is buckets and crop_phones 9"),
        (TRAIN, "compile_buckets", 0, "compile_buckets is 0, expected 1 or more"),
        (TRAIN, "grad_clip_thresh", -0.5, "grad_clip_thresh is -0.5, expected 0 or more"),
        (TRAIN, "valid_steps", -1, "expected 0 or more"),
        (TRAIN, "score_steps", -1, "score_steps is -1, expected 0 or more"),
        (TRAIN, "score_utterances", 0, "expected 1 or more"),
        (TRAIN, "score_seconds", 0.0, "score_seconds is 0, expected more than 0 and at most 60"),
        (TRAIN, "score_seconds", 61.0, "score_seconds is 61, expected more than 0 and at most 60"),
        (TRAIN, "max_steps", -5, "max_steps is -5, expected 0 or more"),
        (TRAIN, "max_steps", 0, "set max_steps or max_epoch"),
        (TRAIN, "ema_decay", 1.0, "ema_decay is 1, expected a share: 0 or more, less than 1"),
        (TRAIN, "keep_milestones", (5, 0), "keep_milestones holds 0, expected updates, 1 or more"),
        (AdamConfig(), "lr", -1.0, "lr is -1, expected 0 or more"),
        (AdamConfig(), "max_grad_norm", -1.0, "max_grad_norm is -1, expected 0 or more"),
        (AdamConfig(), "betas", (0.9, 1.0), r"betas are \[0.9, 1.0\], expected numbers from 0"),
        (ScheduleConfig(), "num_warmup", -1, "expected 0 or more"),
        (ScheduleConfig(), "end_lr", -1.0, "end_lr is -1, expected 0 or more"),
        (TRAIN, "tracker", ("jsonl", "jsonl"), "expected 'none', or one or more names"),
        (TRAIN, "tracker", (), "expected 'none', or one or more names"),
        (ProfileConfig(), "steps", (10,), r"steps are \[10\], expected the first and the last"),
        (ProfileConfig(), "steps", (5, 4), r"steps are \[5, 4\], expected the first"),
        (TRAIN, "lr_scheduler", FALLING, r"end_lr is 1, more than adam\.lr 0\.0625"),
        (PreprocessConfig(), "min_attention", 1.5, "min_attention is 1.5, expected a share"),
        (PreprocessConfig(), "log_floor", 0.0, "log_floor"),
        (DataLoaderConfig(), "num_worker", -1, "expected 0 or more"),
        (PreprocessConfig(), "n_fft", 2**40, "n_fft 1099511627776, n_mels 80: expected at most"),
        (PreprocessConfig(), "n_mels", 10**9, "n_mels 1000000000: expected at most 32768 and 1024"),
        (InferenceConfig(), "batch_size", 0, "expected 1 or more"),
        (InferenceConfig(), "sentence_pause_s", -1.0, "expected 0 or more"),
        (SplitConfig(), "test", -0.1, "test is -0.1, expected a share: 0 or more, less than 1"),
        (SplitConfig(), "valid", 1.0, "valid is 1, expected a share"),
        (SplitConfig(), "golden_size", 0, "expected 1 or more"),
        (PreprocessConfig(), "n_mels", 0, "expected 1 or more"),
        (PreprocessConfig(), "shard_size", 0, "expected 1 or more"),
        (PreprocessConfig(), "edge_silence_s", -0.1, "expected 0 or more"),
        (PreprocessConfig(), "min_seconds", 30.0, "expected min_seconds < max_seconds"),
        (PreprocessConfig(), "max_misfit", 9.0, "aligner pocketsphinx does not measure"),
        (PreprocessConfig(), "max_bad_ratio", 5.0, "max_bad_ratio is 5, expected a share"),
        (PreprocessConfig(), "f0_min", 700.0, "expected 0 < f0_min < f0_max < 11025 Hz"),
        (PreprocessConfig(), "hop_length", 0, "hop_length 0, win_length 1024, n_fft 1024: expect"),
        (PreprocessConfig(), "n_mels", 300, r"7 of 300 mel bands hold no STFT bin; use fewer"),
        (PreprocessConfig(), "sample_rate", 8000, "f_max 8000.0: expected .* sample rate 8000"),
        (InferenceConfig(), "question_rise", -1.0, "question_rise is -1, expected semitones, 0"),
        (InferenceConfig(), "question_rise", 12.5, "question_rise is 12.5, expected semitones, 0"),
        (CONFIG, "inference", MIXING, r"inference.p_arpabet is 0, but .* no word is mixed"),
        (CONFIG, "inference", HALF, r"inference.p_arpabet is 0.5, but .* no word is mixed"),
        (replace(CONFIG, train=OF_SPEAKERS), "task", "vocoder", "is speakers, but vocoders have"),
        (TextConfig(), "p_arpabet", 0.5, "p_arpabet is 0.5, but phone_extractor lexicon does not"),
        (TextConfig("none", "mixed"), "p_arpabet", 1.5, "p_arpabet is 1.5, expected a probabil"),
        (TextConfig("none", "letters"), "lexicon_path", "a", "lexicon_path holds phones"),
        (TextConfig("none", "nvidia_english"), "pauses", "sp", "keeps all punctuation; remove"),
        (CONFIG, "dataset", (), "expected one or more, each once"),
        (CONFIG, "dataset", ("A", "A"), "expected one or more, each once"),
        (CONFIG, "dataset_path", {"A": "a"}, r"preprocess\.corpus\.B belongs to no dataset.* A$"),
    ],
)
def test_a_value_that_cannot_work_is_refused_before_any_work(section, key, value, message):
    with pytest.raises(ValueError, match=message):
        replace(section, **{key: value})


def test_trackers_are_one_several_or_none():
    several = ("jsonl", "wandb")
    for given, names in (("tensorboard", ("tensorboard",)), ("none", ()), (several, several)):
        assert replace(TRAIN, tracker=given).trackers == names


def test_a_limit_of_the_gradient_is_read_by_lamb_only():
    unread = ["train.adam.max_grad_norm"]
    for optimizer, expected in (("adam", unread), ("adamw", unread), ("lamb", [])):
        train = replace(TRAIN, optimizer=optimizer, adam=AdamConfig(max_grad_norm=2.0))
        assert train.unread_keys == expected


def test_the_resolved_configuration_is_read_again(tmp_path):
    schedule = {"scheduler": "multistep", "lr_scheduler": {"milestones": [5]}}
    base = {"task": "tts", "model_type": "FastSpeech2", "train": {"max_steps": 9, **schedule}}
    base |= {"dataset": ["a"], "dataset_path": {"a": "a"}, "log_dir": "ckpts"}
    (tmp_path / "base.json").write_text(json.dumps(base))
    config = load_config(tmp_path / "base.json", ["train.scheduler=constant"])
    path = tmp_path / "config.json"
    path.write_text(json.dumps(plain_config(config)))
    assert load_config(path) == config


def test_recordings_of_any_length_keep_all_other_keys():
    config = PreprocessConfig(min_seconds=1.0, max_seconds=2.0, sample_rate=24000)
    unlimited = config.of_any_length()
    assert (unlimited.min_seconds, unlimited.max_seconds) == (0.0, float("inf"))
    assert replace(unlimited, min_seconds=1.0, max_seconds=2.0) == config


@pytest.mark.parametrize("aligner", ["pocketsphinx", "textgrid", "imported", "hmm", "learned"])
@pytest.mark.parametrize("extractor", ["letters", "mixed", "nvidia_english"])
def test_letters_need_an_aligner_that_does_not_give_phones(extractor, aligner):
    text = TextConfig(phone_extractor=extractor)
    if aligner == "learned" or (extractor == "letters" and aligner in ("hmm", "imported")):
        assert PreprocessConfig(text=text, aligner=aligner).text == text
        return
    with pytest.raises(ValueError, match=f"aligner {aligner}.* set aligner to .*learned"):
        PreprocessConfig(text=text, aligner=aligner)


@pytest.mark.parametrize(
    ("trained", "chosen", "spoken"),
    [(1.0, None, 1.0), (0.5, None, 1.0), (0.0, None, 0.0), (0.5, 0.0, 0.0), (0.5, 0.25, 0.25)],
)
def test_synthesis_says_words_in_phones_if_the_voice_has_learnt_any(trained, chosen, spoken):
    text = TextConfig(phone_extractor="mixed", p_arpabet=trained)
    preprocess = PreprocessConfig(text=text, aligner="learned")
    inference = InferenceConfig(p_arpabet=chosen)
    config = replace(CONFIG, preprocess=preprocess, inference=inference)
    assert config.spoken_p_arpabet == spoken
