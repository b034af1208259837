"""Speech that is too quiet, too loud, or far from the level of its recording.

By the active speech level of ITU-T P.56 (`processors.audio.speech_level`), dB relative to full
scale, which excludes pauses. Flagged below -45 dB and above -10 dB, and where it differs from the
recording's by more than 10 dB. Recordings of speech have -35 to -14 dB; telephone speech is set to
-26. Levels of one speaker's sentences differ from their mean by 2 dB (standard deviation), and by
at most 9, in 1,124 recordings. Signals without speech are flagged, too.
"""

from processors.scoring.checks import Check
from processors.scoring.recognition import LabelledSpeech

CHECK = Check(finds="too quiet or too loud")
QUIETEST_DB = -45.0
LOUDEST_DB = -10.0
DIFFERENCE_DB = 10.0


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for a wrong level.

    Args:
        speech: Speech to check.
        recorded: Its recording, where there is one.
    """
    recorded_level = recorded.level if recorded is not None else None
    compared = ""
    if recorded_level is not None:
        compared = f", recorded: {recorded_level.level_db:.1f} dB"
    if speech.level is None:
        return f"silent: nothing above -90 dB of full scale{compared}"
    level_db = speech.level.level_db
    if level_db < QUIETEST_DB:
        return f"too quiet: speech at {level_db:.1f} dB of full scale{compared}"
    if level_db > LOUDEST_DB:
        return f"too loud: speech at {level_db:.1f} dB of full scale{compared}"
    difference_db = level_db - recorded_level.level_db if recorded_level is not None else 0.0
    if abs(difference_db) <= DIFFERENCE_DB:
        return None
    how = "quieter" if difference_db < 0 else "louder"
    return f"{abs(difference_db):.1f} dB {how} than recorded: speech at {level_db:.1f} dB{compared}"
