"""The README.md of an experiment, in the form the Hugging Face Hub shows."""

from collections.abc import Mapping
from pathlib import Path

from config.schema import Config
from models.assets import Assets
from models.training_state import Position
from utils.files import replacing

_TEXT = """---
tags: [{tags}]
language: [{languages}]
library_name: arion
---
# {name}

{model_type}, trained with Arion for {step} updates (epoch {epoch}).

| | |
|---|---|
| data | {data} |
| speakers | {speakers} |
| audio | {audio} |
| mel | {mel} |
| validation loss | {losses} |
| best | {best} |

## Use

```python
from models.synthesizer import Synthesizer

speech = Synthesizer("{name}")("Any text.")  # the path of this folder, or its name on the Hub
speech.wav, speech.sample_rate
```

The voice is that of the speakers of the data: their licence and their consent bound its use.
"""


def write_card(
    folder: Path, config: Config, assets: Assets, position: Position, losses: Mapping[str, float]
) -> None:
    """Writes README.md of an experiment.

    Args:
        folder: The experiment.
        config: Its configuration.
        assets: Mel definition, speakers and statistics.
        position: Where training stands.
        losses: Of the last validation, by name.
    """
    text = _TEXT.format(
        tags="text-to-speech" if config.task == "tts" else "vocoder",
        languages=", ".join(sorted({s.language.split("-")[0] for s in assets.speakers})),
        name=folder.name,
        model_type=config.model_type,
        step=position.step,
        epoch=position.epoch + 1,
        data=_data(config, assets),
        speakers=_speakers(assets),
        audio=f"{assets.mel.sample_rate} Hz",
        mel=_mel(assets),
        losses=", ".join(f"{name} {value:.4g}" for name, value in losses.items()) or "not measured",
        best=_best(position),
    )
    with replacing(folder / "README.md") as temporary:
        temporary.write_text(text, encoding="utf-8")


def _data(config: Config, assets: Assets) -> str:
    names = ", ".join(config.dataset)
    if assets.stats is None:
        return names
    hours = sum(stats.seconds for stats in assets.stats.speakers.values()) / 3600
    return f"{names} ({hours:.2f} hours)"


def _speakers(assets: Assets) -> str:
    shown = ", ".join(speaker.name for speaker in assets.speakers[:10])
    return f"{len(assets.speakers)}: {shown}{', ...' if len(assets.speakers) > 10 else ''}"


def _mel(assets: Assets) -> str:
    mel = assets.mel
    return (
        f"{mel.n_mels} bands, {mel.f_min:g} to {mel.f_max:g} Hz, n_fft {mel.n_fft}, window "
        f"{mel.win_length}, hop {mel.hop_length}, padding {mel.padding}, natural logarithm"
    )


def _best(position: Position) -> str:
    if position.best is None:
        return "not measured"
    return f"{position.best:.4g} at update {position.best_step}"
