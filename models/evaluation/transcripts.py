"""Whether what is heard can be put beside the texts: before the work, and after it."""

from collections.abc import Mapping, Sequence

from models.evaluation.inputs import refuse
from models.evaluation.scores import System
from processors.scoring.recognition import transcript_of
from processors.scoring.user_models import UserModels
from processors.scoring.utterance_scorer import EvaluatedUtterance
from utils.logging import get_logger

MOST_MISREAD = 80  # % of the words of recordings: clear speech in the right language has far fewer


def check_transcripts(
    items: Sequence[EvaluatedUtterance], own: UserModels, of_system: Mapping[str, UserModels]
) -> None:
    """Makes sure that there is a transcript of every file with a text, before any work.

    Args:
        items: What is scored.
        own: What the user brings: its transcripts may hold those of recordings.
        of_system: The same with the transcripts of each system.

    Raises:
        InputError: If some are missing, of a folder that is there; lists them.
    """
    missing = []
    for item in (one for one in items if one.text):
        folders = {name: plugins.transcripts for name, plugins in of_system.items()}
        paths = [
            transcript_of(folder, item.id, recorded=False)
            for name, folder in folders.items()
            if folder is not None and name in item.spoken
        ]
        if own.transcripts is not None and item.recorded is not None:
            paths.append(transcript_of(own.transcripts, item.id, recorded=True))
        missing += [str(path) for path in paths if path.parent.exists() and not path.is_file()]
    refuse(missing, f"--transcripts: {len(missing)} are missing, of utterances with a text")


def warn_of_misfit(
    systems: Sequence[System], items: Sequence[EvaluatedUtterance], datasets: Sequence[str]
) -> None:
    """Says where the recogniser understands not even the recordings.

    Args:
        systems: What was scored.
        items: Their utterances, with the language of their texts.
        datasets: Where that may come from.
    """
    for system in systems:
        score = system.report.scores.get("wer_recorded")
        if system.is_reference or score is None or score.mean <= MOST_MISREAD:
            continue
        languages = ", ".join(sorted({item.language for item in items if item.language}))
        dataset = datasets[0] if len(datasets) == 1 else "<name>"
        _log.warning(
            "the recogniser misreads %.0f %% of the words of the recordings, so that it and the "
            "texts do not fit: the language is taken to be %s; set it by --set "
            "preprocess.corpus.%s.language=de or such, or give a --recogniser of yours for it",
            score.mean,
            languages or "unknown",
            dataset,
        )
        return


_log = get_logger(__name__)
