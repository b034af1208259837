"""Text to speech: an acoustic model and a vocoder, and stage 3, which writes their speech."""

from models.synthesizer.synthesizer import Synthesizer

__all__ = ["Synthesizer"]
