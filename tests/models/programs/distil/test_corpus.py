"""Corpora that a toy teacher speaks: what is written, rejected, refused, and done again."""

import re

import pytest
import soundfile

from config.preprocess import CorpusConfig
from preprocessors.corpora import read_corpus, read_origin
from preprocessors.manifest import Origin
from tests.commands import ROOT, command
from tests.processes import Process
from utils.files import read_json, read_jsonl

TOY = "tests.models.programs.distil.toy_teacher:speak"
HEARING = "tests.models.programs.distil.toy_teacher:hear"
EVERYDAY = ROOT / "egs" / "_texts" / "everyday.txt"
GOOD = [f"The number {n} is written on the old door." for n in range(10)]


def distil(*words, texts=EVERYDAY, teacher=TOY, out):
    return command("distil", teacher, texts, out, "--num_workers", "1", *words)


def spoken(folder, texts, *words, voices="anna", code=0):
    """Has texts spoken into `out` of a folder."""
    (folder / "t.txt").write_text("\n".join(texts))
    done = distil("--voices", voices, *words, texts=folder / "t.txt", out=folder / "out")
    assert done.returncode == code, done.stderr
    return done


def rows_of(folder):
    header, *lines = (folder / "metadata.csv").read_text(encoding="utf-8").splitlines()
    assert header == "id|speaker|text|normalized"
    return [line.split("|") for line in lines]


def content_of(folder):
    """All files that a user sees, by path."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(p.relative_to(folder)): p.read_bytes() for p in paths if p.name != "clips.jsonl"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Good texts and faulty ones by one voice."""
    folder = tmp_path_factory.mktemp("distil")
    faulty = "nothing quiet broken late waits loud slowly hastily stereo sixteen_bits raise"
    names = [name.replace("_", " ") for name in faulty.split()]
    texts = [*GOOD, *(f"This text is read {name} in the old house." for name in names)]
    done = spoken(folder, texts)
    assert "anna: 10 clips, " in done.stderr
    assert "; 11 rejected" in done.stderr
    assert "no --licence: model cards will say that it is unknown" in done.stderr
    return folder / "out"


def test_texts_are_written_as_they_are_and_in_words(corpus):
    rows = sorted(rows_of(corpus))
    assert [row[0] for row in rows] == [f"anna_t-{n:04}" for n in range(1, 11)]
    assert rows[7][1:] == [
        "anna",
        "The number 7 is written on the old door.",
        "The number seven is written on the old door.",
    ]


def test_clips_are_flac_of_16_bits_at_the_rate_of_the_teacher(corpus):
    for id, *_ in rows_of(corpus):
        info = soundfile.info(corpus / "wavs" / f"{id}.flac")
        assert (info.samplerate, info.channels, info.subtype) == (8000, 1, "PCM_16")
    assert len(list((corpus / "wavs").iterdir())) == 10


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing", "no sound: 0 samples"),
        ("quiet", "nothing but silence"),
        ("broken", "samples are NaN or infinite"),
        ("late", "2.1 s of silence before the speech"),
        ("waits", "s of silence at "),
        ("loud", " clipped samples in "),
        ("slowly", "too long: 2.8"),
        ("hastily", "too short: 0.3"),
        ("stereo", "the teacher must return an array of mono samples"),
        ("sixteen bits", "peak "),
        ("raise", "no such word"),
    ],
)
def test_faulty_clips_are_rejected_with_the_reason(corpus, text, reason):
    rejected = {row["text"]: row for row in read_jsonl(corpus / "rejected.jsonl")}
    row = rejected[f"This text is read {text} in the old house."]
    assert reason in row["reason"]
    has_sound = text not in ("nothing", "broken", "stereo", "sixteen bits", "raise")
    assert (corpus / "rejected" / f"{row['id']}.flac").is_file() == has_sound
    assert not (corpus / "wavs" / f"{row['id']}.flac").exists()


def test_the_reader_of_stage_1_takes_the_corpus(corpus):
    listing = read_corpus("toy", corpus, CorpusConfig(format="folder"))
    assert len(listing.utterances) == 10
    assert listing.rejected == []
    assert {u.speaker for u in listing.utterances} == {"toy_anna"}
    assert listing.utterances[3].text == "The number three is written on the old door."
    assert listing.origin == Origin(TOY, "") == read_origin(corpus / "corpus.json")


def test_minutes_count_the_good_clips_of_each_voice_which_get_different_texts(tmp_path):
    done = distil("--voices", "anna,bert", "--minutes", "0.5", out=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    seconds, texts = {}, {}
    for id, voice, text, _ in rows_of(tmp_path / "out"):
        clip = soundfile.info(tmp_path / "out" / "wavs" / f"{id}.flac").duration
        seconds[voice] = seconds.get(voice, 0) + clip
        texts.setdefault(voice, set()).add(text)
    assert all(30 <= s < 45 for s in seconds.values())
    assert texts["anna"].isdisjoint(texts["bert"])
    before = rows_of(tmp_path / "out")
    done = distil("--voices", "anna,bert", "--minutes", "1", out=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "out")) > 1.7 * len(before)
    assert {row[0] for row in before} < {row[0] for row in rows_of(tmp_path / "out")}


def test_every_voice_speaks_the_texts_of_every_and_the_same_texts_if_asked(tmp_path):
    (tmp_path / "every.txt").write_text("Hello there, my friend!\nIs it you?\n")
    words = ("--voices", "anna,bert", "--texts", "3", "--every", tmp_path / "every.txt")
    assert distil(*words, out=tmp_path / "a").returncode == 0
    assert distil(*words, "--same_texts", out=tmp_path / "b").returncode == 0
    for folder, n_different in (("a", 8), ("b", 5)):
        rows = rows_of(tmp_path / folder)
        assert [row[1] for row in rows] == 5 * ["anna"] + 5 * ["bert"]
        of_every = {"Hello there, my friend!", "Is it you?"}
        assert {row[2] for row in rows[:2]} == {row[2] for row in rows[5:7]} == of_every
        assert len({row[2] for row in rows}) == n_different


def test_clips_whose_words_a_recogniser_does_not_hear_are_rejected(tmp_path):
    texts = ("Where is the old lighthouse?", "The cat sleeps on the mat.")
    spoken(tmp_path, texts, "--recogniser", HEARING)
    assert [row[2] for row in rows_of(tmp_path / "out")] == ["Where is the old lighthouse?"]
    (rejected,) = read_jsonl(tmp_path / "out" / "rejected.jsonl")
    reason = "word error rate 100 %, recognised: where is the old lighthouse"
    assert (rejected["id"], rejected["reason"]) == ("anna_t-0002", reason)


def test_a_run_that_was_killed_goes_on_where_it_ended(tmp_path, monkeypatch):
    texts, log = tmp_path / "t.txt", tmp_path / "log"
    texts.write_text("\n".join(GOOD))
    flags = ["--voices", "anna,bert", "--texts", "5"]

    words = ["-m", "bins.distil", TOY, texts, tmp_path / "out", *flags, "--num_workers", 1]
    killed = Process(*words, TOY_LOG=str(log), TOY_KILLS_AT="6").finish()
    assert killed.returncode == -9, killed.stderr
    assert not (tmp_path / "out" / "metadata.csv").exists()
    monkeypatch.setenv("TOY_LOG", str(log))
    done = distil(*flags, texts=texts, out=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    spoken = log.read_text().splitlines()
    assert len({*spoken}) == 10
    assert len(spoken) <= 10 + 1  # when it was killed, a text was being spoken
    assert distil(*flags, texts=texts, out=tmp_path / "out").returncode == 0
    assert log.read_text().splitlines() == spoken
    assert distil(*flags, texts=texts, out=tmp_path / "whole").returncode == 0
    assert content_of(tmp_path / "out") == content_of(tmp_path / "whole")


def test_texts_that_run_out_are_reported_and_a_voice_without_any_is_an_error(tmp_path):
    none = spoken(tmp_path, GOOD[:1], voices="anna,bert", code=1)
    assert "of 1 text, a voice gets 0; give more texts, or fewer voices" in none.stderr
    assert not (tmp_path / "out").exists()
    few = spoken(tmp_path, GOOD, "--texts", "6", voices="anna,bert")
    assert "of 10 texts, a voice gets 5; give more texts, or a smaller --texts" in few.stderr
    short = spoken(tmp_path, GOOD, "--minutes", "2", voices="anna,bert")
    assert "anna: all texts are spoken, 0.2 of 2 min; give more texts" in short.stderr


def test_a_teacher_of_faulty_sound_is_stopped_after_the_first_clips(tmp_path):
    texts = [f"This text is read quiet in house {n}." for n in range(30)]
    done = spoken(tmp_path, texts, code=1)
    message = r"error: all 20 clips of anna are faulty, at last anna_t-\d{4}: nothing but silence"
    assert re.search(message, done.stderr)
    assert len((tmp_path / "out" / "clips.jsonl").read_text().splitlines()) in (20, 21)


def test_a_teacher_that_always_fails_ends_the_run_and_is_asked_again_later(tmp_path):
    done = spoken(tmp_path, [f"raise {text}" for text in GOOD], code=1)
    fault = f"{TOY} fails: RuntimeError: no such word"
    message = f"error: the teacher fails again and again: anna_t-....: {fault}"
    assert re.search(message, done.stderr.splitlines()[-1])
    assert "Warning" not in done.stderr
    assert (tmp_path / "out" / "clips.jsonl").read_text() == ""


def test_a_corpus_without_usable_clips_is_an_error(tmp_path):
    done = spoken(tmp_path, ["raise it"], code=1)
    assert f"error: {tmp_path}/out: no clip can be used: {TOY} fails: RuntimeError" in done.stderr
    assert not (tmp_path / "out" / "metadata.csv").exists()


def test_a_teacher_that_leaves_python_fails(tmp_path):
    done = spoken(tmp_path, (f"exit {GOOD[0]}", GOOD[1]))
    assert "anna: 1 clip, 0.0 min; 1 rejected" in done.stderr
    (rejected,) = read_jsonl(tmp_path / "out" / "rejected.jsonl")
    assert rejected["reason"].startswith(f"{TOY} fails: SystemExit: 3 (")


def test_samples_that_are_no_numbers_are_not_asked_for_again(tmp_path):
    for _ in range(2):
        spoken(tmp_path, ("It is broken here.", GOOD[0]))
        assert len(read_jsonl(tmp_path / "out" / "clips.jsonl")) == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--voices", "bert"], "--voices was anna, is bert"),
        (["--seed", "1"], "--seed was 0, is 1"),
        (["--language", "en-gb"], "--language was en-us, is en-gb"),
        (["--same_texts"], "--same_texts was False, is True"),
        (["--every", EVERYDAY], "--every was 0 texts of SHA-256 4f53cda18c2baa0c, is 330 texts"),
        (["--exclude", "exclude"], "TEXTS (or --exclude) was 21 texts of SHA"),
        (["--recogniser", HEARING], f"--recogniser was None, is {HEARING}"),
        ([], f"TEACHER was {TOY}, is {HEARING}"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused_by_name(corpus, tmp_path, changed, message):
    (tmp_path / "exclude").write_text(GOOD[0])
    before = content_of(corpus)
    words = [tmp_path / word if word == "exclude" else word for word in changed]
    voices = [] if "--voices" in words else ["--voices", "anna"]
    done = distil(
        *voices, *words,
        texts=corpus.parent / "t.txt", out=corpus, teacher=TOY if changed else HEARING,
    )  # fmt: skip
    assert done.returncode == 1
    assert "holds a corpus of other settings; choose another folder:" in done.stderr
    assert "no --licence" not in done.stderr
    assert message in done.stderr
    assert content_of(corpus) == before


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").touch()
    done = distil("--voices", "anna", out=tmp_path)
    assert "holds 'thesis.txt' and no corpus; choose a new folder" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --voices, such as --voices anna"),
        (["--voices", "anna,,"], "expected names and commas"),
        (["--voices", "anna", "--minutes", "1", "--texts", "2"], "not allowed with"),
        (["--voices", "anna", "--minutes", "-1"], "expected a number from 0.01"),
    ],
)
def test_wrong_flags_are_refused_before_any_work(tmp_path, words, message):
    done = distil(*words, out=tmp_path / "out")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("voices", "id", "clips"),
    [
        ("anna", "c", "anna_a: {t}:1 by anna, {t}:2 by anna"),
        ("anna", "b", "anna_b: {every}:1 by anna, {t}:3 by anna"),
        ("a+b,a-b,a:b", "c", "a_b_c: {every}:1 by a+b, {every}:1 by a:b"),
        ("x,x_c", "c_b", "x_c_b: {every}:1 by x, {t}:3 by x_c"),
    ],
)
def test_clips_of_one_id_are_refused_with_the_places_of_their_texts(tmp_path, voices, id, clips):
    texts, every, out = (tmp_path / name for name in ("t.csv", "every.csv", "out"))
    texts.write_text("a|One.\na|Two.\nb|Four.\n")
    every.write_text(f"{id}|Three.\n")
    done = distil("--voices", voices, "--every", every, "--texts", "1", texts=texts, out=out)
    assert done.returncode == 1
    assert "several clips would have the same id; rename texts or voices:" in done.stderr
    assert clips.format(t=texts, every=every) in done.stderr
    assert "no --licence" not in done.stderr
    assert not out.exists()


def test_a_resumed_run_reports_the_clips_that_it_has(corpus):
    done = distil("--voices", "anna", texts=corpus.parent / "t.txt", out=corpus)
    assert done.returncode == 0, done.stderr
    assert f"{corpus} has 18 clips; the teacher starts" in done.stderr


def test_name_and_licence_are_recorded_and_may_be_given_later(tmp_path):
    for licence in ([], ["--licence", "cc0-1.0"]):
        spoken(tmp_path, GOOD[:1], "--name", "Toy 1", *licence)
        recorded = read_json(tmp_path / "out" / "corpus.json")["origin"]
        assert recorded == {"spoken_by": "Toy 1", "licence": "".join(licence[1:])}
