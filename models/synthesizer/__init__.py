"""Text to speech: an acoustic model and a vocoder, and stage 3, which writes their speech."""

from models.synthesizer.speech import Speech, SpeechStream
from models.synthesizer.synthesizer import Synthesizer

__all__ = ["Speech", "SpeechStream", "Synthesizer"]
