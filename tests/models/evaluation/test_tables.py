from pathlib import Path

from models.evaluation.scores import Comparison, Evaluation, Report, Score, System
from models.evaluation.tables import table_of, tables_of
from modules.mel import MelConfig
from processors.scoring.checks import Flag
from processors.scoring.utterance_scorer import UtteranceScores

MCD = Score("dB", "lower", 5.25, 5.0, 5.5, 20)
WER = Score("%", "lower", 20.0, None, None, 1)


def report(**changes) -> Report:
    return Report(20, 60.0, "", **({"scores": {"mcd": MCD}, "skipped": {}} | changes))


def system(name: str, **changes) -> System:
    return System(name, Path(name), report(**changes), {})


def test_references_stand_beside_each_mean_with_scores_that_only_they_have():
    floor = Score("dB", "lower", 4.5, 4.0, 5.0, 12)
    nats = Score("nats", "lower", 0.25, 0.2, 0.3, 20)
    references = {"copy": {"mel_l1": nats}, "natural": {"mcd": floor}}
    table = table_of({"mcd": MCD, "wer": WER}, references, utterances=20)
    assert table.splitlines() == [
        "metric  mean  95% interval  unit  n   better  copy               natural",
        "mcd     5.25  5 .. 5.5      dB    20  lower   -                  4.5 (4 .. 5, n 12)",
        "wer     20                  %     1   lower   -                  -",
        "mel_l1  -                   nats      lower   0.25 (0.2 .. 0.3)  -",
    ]


def test_n_stands_where_not_all_utterances_have_a_score():
    silent = system("silent", scores={"mcd": Score("dB", "lower", 0.0, 0.0, 0.0, 2), "wer": WER})
    text = tables_of(Evaluation((silent, system("rec")), (), MelConfig()))
    assert text.splitlines() == [
        "metric  unit  better  silent           rec",
        "mcd     dB    lower   0 (0 .. 0, n 2)  5.25 (5 .. 5.5)",
        "wer     %     lower   20 (n 1)         -",
    ]


def test_no_recordings_have_no_failures():
    one = system("a", flags={"dc": 1})
    assert tables_of(Evaluation((one,), (), MelConfig())).splitlines()[-2:] == [
        "failures  a",
        "dc        1 of 20",
    ]


def test_utterances_that_a_check_could_not_judge_are_not_counted_as_fine():
    unjudged = UtteranceScores("u", 1.0, {}, unchecked=(Flag("words", "no text"),))
    one = System("a", Path("a"), report(flags={"words": 0, "dc": 1}), {"u": unjudged})
    assert tables_of(Evaluation((one,), (), MelConfig())).splitlines()[-2:] == [
        "words     0 of 19",
        "dc        1 of 20",
    ]


def test_a_single_system_has_a_table_and_its_failures():
    one = system("a", flags={"silence": 2, "dc": 0}, recorded_flags={"silence": 1, "dc": 0})
    natural = System("natural", Path("n"), report(), {}, is_reference=True)
    assert tables_of(Evaluation((one, natural), (), MelConfig())).splitlines() == [
        "metric  mean  95% interval  unit  n   better",
        "mcd     5.25  5 .. 5.5      dB    20  lower",
        "",
        "failures  a        recordings",
        "silence   2 of 20  1 of 20",
        "dc        0 of 20  0 of 20",
    ]


def test_systems_are_compared_in_plain_words():
    differences = {
        "mcd": Score("dB", "lower", -0.5, -0.75, -0.25, 20),
        "mstft": Score("", "lower", 0.5, -0.5, 1.5, 20),
        "rate": Score("", "", 0.25, 0.2, 0.3, 20),
        "stoi": Score("", "higher", 0.25, 0.2, 0.3, 5),
    }
    natural = {"natural": {"mcd": Score("dB", "lower", 4.5, 4.0, 5.0, 12)}}
    first = system("a", references=natural)
    second = system("b", scores={"mcd": MCD, "wer": WER}, references=natural)
    comparisons = (Comparison("a", "b", differences),)
    text = tables_of(Evaluation((first, second), (), MelConfig(), comparisons))
    assert text.splitlines() == [
        "metric  unit  better  a                b                natural",
        "mcd     dB    lower   5.25 (5 .. 5.5)  5.25 (5 .. 5.5)  4.5 (4 .. 5, n 12)",
        "wer     %     lower   -                20 (n 1)         -",
        "",
        "a less b, by utterance",
        "metric  difference  95% interval    unit  n   a is",
        "mcd     -0.5        -0.75 .. -0.25  dB    20  better",
        "mstft   +0.5        -0.5 .. 1.5           20  no clear difference",
        "rate    +0.25       0.2 .. 0.3            20  differs",
        "stoi    +0.25       0.2 .. 0.3            5   too few utterances to say",
    ]
