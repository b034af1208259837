"""Features of stage 1 as a voice reads them; durations by its attention, or its joint aligner.

FastPitch 1.0 takes its durations from the attention of a Tacotron 2 with teacher forcing (Łańcucki
2021, arXiv:2006.06873, section 2.1), FastSpeech from its teacher (Ren et al. 2019,
arXiv:1905.09263, section 3.3).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from models.base.aligner import ALIGNER, JointAligner
from models.base.devices import resolved_device
from models.base.model import AttentiveModel
from models.base.registry import model_of
from models.checkpoint.foreign import fetch
from models.checkpoint.loading import TrainedModel, fill_network, is_experiment, load_model
from modules.alignment.attention_quality import path_quality
from modules.alignment.search import argmax_durations, monotonic_durations
from preprocessors.manifest import read_utterances
from processors.alignment.aligner import AlignmentError
from processors.alignment.timed import Grid
from processors.dataset.batch import TtsBatch, collate, on_device
from processors.dataset.datasets import FeatureDataset
from processors.dataset.sampler import Draw
from processors.dataset.store import FeatureStore
from processors.durations import AttentionPath
from processors.durations.sources import DurationSource, FrameRate, SourceEntry
from processors.records import Features, TimedPhone
from utils.errors import InputError, listed
from utils.logging import get_logger, progress

_log = get_logger(__name__)

_BATCH_FRAMES = 8192  # padding included; about 95 s
_LEAST_ATTENTION = 1e-6  # the path may cross a phone without attention


class VoiceData:
    """Features as a voice reads them; words that may be in letters or phones are as in synthesis.

    If voice and features have one speaker each, their names need not agree: imported voices do not
    know the name of theirs.
    """

    def __init__(
        self, voice: TrainedModel, store: FeatureStore, *, any_speaker: bool = False
    ) -> None:
        self.voice = voice
        self.store = store
        self.vocabulary = voice.assets.required_vocabulary(voice.home)
        speakers = [speaker.name for speaker in voice.speakers]
        stored = sorted(set(store.speakers))
        # the network ignores the ids of a single speaker
        if len(speakers) == 1 and (any_speaker or len(stored) == 1):
            if speakers != stored:
                message = "%s speaks as %s for the utterances of %s"
                _log.warning(message, voice.origin, speakers[0], listed(stored, 3))
            speakers = stored
        p_arpabet = voice.config.preprocess.text.certain_p_arpabet
        self._items = FeatureDataset(
            [store], [store.ids], self.vocabulary, speakers, p_arpabet=p_arpabet
        )

    def features(self, id: str) -> Features:
        """Reads the features of an utterance, each word in letters or phones."""
        return self._items.features(self._draw(id))

    def batch(self, ids: Iterable[str]) -> TtsBatch:
        """Makes a batch of utterances, on the voice's device."""
        items = [self._items[self._draw(id)] for id in ids]
        device = next(self.voice.network.parameters()).device
        return on_device(collate(items, self.voice.mel.log_floor_value), device)

    def groups(self, ids: Iterable[str]) -> list[list[str]]:
        """Returns utterances of similar length together, as many as fit into a batch."""
        frames = {id: int(self.store.frames[self.store.index_of(id)]) for id in ids}
        groups: list[list[str]] = []
        for id in sorted(frames, key=lambda id: (frames[id], id)):
            if not groups or (len(groups[-1]) + 1) * frames[id] > _BATCH_FRAMES:
                groups.append([])
            groups[-1].append(id)
        return groups

    def _draw(self, id: str) -> Draw:
        return Draw(0, self.store.index_of(id))


def is_voice(reference: str) -> bool:
    """Returns whether a name is an experiment's, or nothing on disk: a voice on the Hub."""
    path = Path(reference)
    return not path.exists() or is_experiment(path)


def attention_source(reference: str | Path, folder: Path, path: AttentionPath) -> DurationSource:
    """Takes the durations that a voice finds in features of stage 1.

    Args:
        folder: `<processed_dir>/<dataset>`: features in the mel and the phones of the voice.
        path: `monotonic`: the most likely alignment in which phones follow each other, each with at
            least one frame; `argmax`: each frame counts for the phone of the largest weight.
    """
    voice = load_model(fetch(reference), resolved_device())
    if model_of(voice.config).needs_durations:
        raise InputError(
            f"{reference} is a {voice.config.model_type} and has no attention to take durations"
            " from; give a Tacotron 2"
        )
    try:
        # imported voices do not know the name of their speaker
        data = VoiceData(voice, FeatureStore(folder, voice.mel), any_speaker=True)
        for id in data.store.ids[:1]:  # another text frontend shows now
            data.vocabulary.ids(data.features(id).phones)
    except InputError as error:
        fault = f"{reference} needs features that stage 1 made with its own configuration"
        remedy = "if they are in another folder, name it by --set preprocess.processed_dir"
        raise InputError(f"{fault}; {remedy}: {error}") from error
    return DurationSource(voice.home, f"attention, {path}", _entries(data, path))


def _entries(data: VoiceData, path: AttentionPath) -> Iterator[SourceEntry]:
    """Runs the network over all features."""
    network, store = cast("AttentiveModel", data.voice.network), data.store
    utterances = read_utterances(store.folder)
    with progress(len(store), "attention") as bar:
        for ids in data.groups(store.ids):
            batch = data.batch(ids)
            attention = network.teacher_forced_attention(batch).float().cpu()  # (B, T, N)
            lengths = zip(batch.mel_lengths.tolist(), batch.phone_lengths.tolist(), strict=True)
            for id, weights, (T, N) in zip(ids, attention, lengths, strict=True):
                yield _entry(data, id, utterances[id].text, weights[:T, :N], path)
            bar.advance(len(ids))


def _entry(
    data: VoiceData, id: str, text: str, weights: Tensor, path: AttentionPath
) -> SourceEntry:
    """Finds the durations of one utterance in weights (T, N)."""
    (T, N), folder = weights.shape, data.store.folder
    if path == "monotonic" and N > T:
        reason = f"{N} phones in {T} frames, which cannot all have one; --path argmax allows it"
        return SourceEntry(id, folder, partial(_refuse, reason), text)
    if path == "argmax":
        durations = argmax_durations(weights)
    else:
        network = cast("AttentiveModel", data.voice.network)
        weights_between = _between_steps(weights, network.frames_per_step)
        log_attention = weights_between.clamp(min=_LEAST_ATTENTION).log()[None]  # (1, T, N)
        durations = monotonic_durations(log_attention, torch.tensor([N]), torch.tensor([T]))[0]
    read = partial(_grid, data, id, durations)
    return SourceEntry(id, folder, read, text, path_quality(weights, durations))


def _between_steps(weights: Tensor, frames_per_step: int) -> Tensor:
    """Interpolates weights (T, N), which the frames of a step share, between steps.

    With three frames per step, 3 % more onsets are within 20 ms.
    """
    steps = weights[::frames_per_step].T[None]  # (1, N, K)
    frames = F.interpolate(steps, scale_factor=frames_per_step, mode="linear")
    return frames[0].T[: len(weights)]


def _grid(data: VoiceData, id: str, durations: Tensor) -> Grid:
    """Makes the phones of features a grid, timed by durations (N,) in the recording."""
    features, mel = data.features(id), data.store.mel
    rate = FrameRate(mel.hop_length, mel.sample_rate)
    edges = rate.boundaries_s(durations.numpy(), features.start).tolist()  # (N + 1,)
    spans = zip(features.phones, edges[:-1], edges[1:], strict=True)
    return Grid(None, [], [TimedPhone(*span) for span in spans])


def _refuse(reason: str) -> Grid:
    raise AlignmentError(reason)


def load_joint_aligner(voice: TrainedModel) -> JointAligner:
    """Loads the joint aligner of a voice, on the CPU and in eval mode."""
    section = model_of(voice.config).aligner
    if (aligner := voice.config.preprocess.aligner) != "learned" or section is None:
        raise InputError(
            f"{voice.folder}: trained with preprocess.aligner {aligner}, and has no aligner of its "
            "own; give a voice that was trained with learned"
        )
    tensors = voice.stored(ALIGNER)
    path = voice.folder / f"{ALIGNER}.safetensors"
    if tensors is None:
        remedy = "give the experiment that was trained, or publish it with --with_discriminators"
        raise InputError(f"{path} is missing, and durations need it; {remedy}")
    network = JointAligner.build(section(voice.config.model), voice.assets)
    fill_network(network, tensors, path, "its config.json")
    return network.eval()


def duration_finder(reference: str | Path, folder: Path) -> Callable[[Features], Features]:
    """Returns a function that adds durations to features of the data of a voice."""
    voice = load_model(fetch(reference, for_training=True))
    aligner, store = load_joint_aligner(voice), FeatureStore(folder, voice.mel)
    if store.timed:
        raise InputError(f"{folder} holds durations of an aligner already; export those")
    data = VoiceData(voice, store)

    def find(features: Features) -> Features:
        durations = aligner.find_durations(data.batch([features.id]))
        return replace(data.features(features.id), durations=durations[0].numpy())

    return find
