"""Stage 1 for vocoders: whole recordings and their mels, without text, alignment and pitch."""

from functools import partial

from config.preprocess import PreprocessConfig
from config.schema import Config
from modules.mel import MelSpectrogram
from preprocessors.corpora import portable_path
from preprocessors.manifest import Utterance
from processors.audio.frames import mel_of
from processors.audio.pcm import to_pcm16
from processors.dataset.store import processed_folder
from processors.extraction.fingerprint import DATASET_PATH, IGNORED, Dependence
from processors.extraction.plan import DatasetRun, Product, list_corpus, plan_run
from processors.extraction.shards import ShardWork, Trace, read_recording
from processors.records import MelWav
from utils.files import size_and_time


def plan_vocoder(config: Config, dataset: str) -> DatasetRun:
    """Plans stage 1 of a vocoder; raises InputError if the corpus or the config cannot be used."""
    options = config.preprocess
    root, listing = list_corpus(config, dataset)
    corpus = {DATASET_PATH: portable_path(root)}
    dependence = Dependence("vocoder", IGNORED["vocoder"], _identity, {}, corpus)
    tools = partial(MelWavTools, options)
    work = ShardWork(tools, processed_folder(options, dataset), options.mel)
    return plan_run(options, dataset, listing, dependence, Product(), work)


def _identity(utterance: Utterance) -> list[object]:
    return [utterance.id, utterance.speaker, *size_and_time(utterance.audio)]


class MelWavTools:
    """Extracts mels of recordings; built once per process."""

    def __init__(self, config: PreprocessConfig) -> None:
        self.config = config
        self.mel = MelSpectrogram(config.mel)

    def extract(self, utterance: Utterance, trace: Trace) -> MelWav:
        """Computes the mel of a whole recording, which is cut to whole frames at its end."""
        wav = read_recording(utterance, self.config, trace)
        trace.start("mel")
        hop = self.config.hop_length
        wav = wav[: len(wav) // hop * hop]
        record = MelWav(utterance.id, utterance.speaker, mel_of(wav, self.mel), to_pcm16(wav))
        trace.stop()
        return record
