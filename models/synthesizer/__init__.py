"""Text to speech: an acoustic model and a vocoder, and stage 3, which writes their speech."""

from models.synthesizer.joining import SpeechStream
from models.synthesizer.speech import Speech
from models.synthesizer.synthesizer import Synthesizer

__all__ = ["Speech", "SpeechStream", "Synthesizer"]
