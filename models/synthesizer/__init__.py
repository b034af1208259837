"""Text to sound: an acoustic model and a vocoder, and stage 3, which writes what they say."""

from models.synthesizer.synthesizer import Synthesizer

__all__ = ["Synthesizer"]
