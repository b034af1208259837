"""Silence that is too long: before the speech, after it, inside it, or all there is.

Silence is what lies more than 20 dB below the speech (`processors.audio.speech_level.sounding`).
With a recording, silence at an edge may be 0.5 s longer than there, and a pause 0.5 s longer than
the longest one there; without, the recording counts as one of 0.3 s at the edges and 0.7 s inside.
Silence of less than 0.5 s at an edge, and of 0.8 s inside, is never flagged.

Measured: of 1,261 recordings 99 % have less than 0.2 s before, 0.5 s after and 0.7 s inside; five
are flagged without a recording beside them, for 1.0 to 1.8 s before or after. 1.5 s of silence put
inside is found in all where noise is more than 20 dB below the speech; less is no silence.
"""

from processors.audio.speech_level import Pause, SpeechActivity, speech_activity
from processors.scoring.checks import Check
from processors.scoring.recognition import LabelledSpeech

CHECK = Check(finds="too long silence")
MARGIN_S = 0.5  # by which silence may be longer than recorded
EDGE_S = 0.5  # never flagged
PAUSE_S = 0.8
_USUAL_EDGE_S = 0.3  # of a recording that is not there
_USUAL_PAUSE_S = 0.7


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for too long silence."""
    seconds = len(speech.wav) / speech.sample_rate
    sound = speech_activity(speech.wav, speech.sample_rate)
    if sound is None:
        return f"nothing but silence, {seconds:.1f} s" if seconds else "no sound: 0 samples"
    theirs = speech_activity(recorded.wav, recorded.sample_rate) if recorded is not None else None
    notes = [_edge("before", sound.start_s, theirs and theirs.start_s)]
    after_s = None
    if theirs is not None and recorded is not None:
        after_s = len(recorded.wav) / recorded.sample_rate - theirs.end_s
    notes.append(_edge("after", seconds - sound.end_s, after_s))
    notes.append(_inside(sound, theirs))
    return "; ".join(note for note in notes if note) or None


def _edge(where: str, seconds: float, recorded_s: float | None) -> str:
    usual = _USUAL_EDGE_S if recorded_s is None else recorded_s
    if seconds <= max(EDGE_S, usual + MARGIN_S):
        return ""
    return f"{seconds:.1f} s of silence {where} the speech{_beside(recorded_s)}"


def _inside(sound: SpeechActivity, recorded: SpeechActivity | None) -> str:
    recorded_s = None if recorded is None else _longest(recorded).seconds
    usual = _USUAL_PAUSE_S if recorded_s is None else recorded_s
    pause = _longest(sound)
    if pause.seconds <= max(PAUSE_S, usual + MARGIN_S):
        return ""
    beside = "" if recorded_s is None else f", longest recorded: {recorded_s:.1f} s"
    return f"{pause.seconds:.1f} s of silence at {pause.start_s:.2f} s{beside}"


def _longest(sound: SpeechActivity) -> Pause:
    return max(sound.pauses, key=lambda pause: pause.seconds, default=Pause(0.0, 0.0))


def _beside(recorded_s: float | None) -> str:
    return "" if recorded_s is None else f", recorded: {recorded_s:.1f} s"
