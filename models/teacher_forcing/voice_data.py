"""The features of stage 1 as batches for a voice."""

from collections.abc import Iterable, Iterator
from functools import cached_property

import torch

from models.checkpoint.loading import LoadedModel
from processors.dataset.batch import TtsBatch, collate, on_device
from processors.dataset.datasets import FeatureDataset
from processors.dataset.sampler import Draw
from processors.dataset.store import FeatureStore
from processors.records import Features
from utils.errors import listed
from utils.logging import get_logger

_BATCH_FRAMES = 8192  # padding included; about 95 s


class VoiceData:
    """Features as a voice reads them; words that may be in letters or phones are as in synthesis.

    If voice and features have one speaker each, their names need not agree: imported voices do not
    know the name of theirs.

    Args:
        any_speaker: A voice of one speaker reads all of them as if they were that one.
    """

    def __init__(
        self, voice: LoadedModel, store: FeatureStore, *, any_speaker: bool = False
    ) -> None:
        self.voice = voice
        self.store = store
        self.vocabulary = voice.assets.required_vocabulary(voice.home)
        speakers = [speaker.name for speaker in voice.speakers]
        stored = sorted(set(store.speakers))
        if len(speakers) == 1 and (
            any_speaker or len(stored) == 1
        ):  # the network ignores their ids
            if speakers != stored:
                get_logger(__name__).warning(
                    "%s speaks as %s for the utterances of %s",
                    voice.origin,
                    speakers[0],
                    listed(stored, 3),
                )
            speakers = stored
        p_arpabet = voice.config.preprocess.text.certain_p_arpabet
        self._items = FeatureDataset(
            [store], [store.ids], self.vocabulary, speakers, p_arpabet=p_arpabet
        )

    @cached_property
    def device(self) -> torch.device:
        """That of the voice's network."""
        return next(self.voice.network.parameters()).device

    def features(self, id: str) -> Features:
        """The features of an utterance, each word in letters or phones."""
        return self._items.features(self._draw(id))

    def batch(self, ids: Iterable[str]) -> TtsBatch:
        """Utterances as a batch on the voice's device."""
        items = [self._items[self._draw(id)] for id in ids]
        return on_device(collate(items, self.voice.mel.log_floor_value), self.device)

    def groups(self, ids: Iterable[str]) -> Iterator[list[str]]:
        """Utterances of similar length, as many as fit into a batch."""
        frames = {id: int(self.store.frames[self.store.index_of(id)]) for id in ids}
        group: list[str] = []
        for id in sorted(frames, key=lambda id: (frames[id], id)):
            if group and (len(group) + 1) * frames[id] > _BATCH_FRAMES:
                yield group
                group = []
            group.append(id)
        if group:
            yield group

    def _draw(self, id: str) -> Draw:
        return Draw(0, self.store.index_of(id))
