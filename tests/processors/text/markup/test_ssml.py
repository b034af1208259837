"""Documents of SSML as runs, and what is refused, with its place."""

import re
import time
from contextlib import suppress
from pathlib import Path

import pytest

from config.text import TextConfig
from processors.text.markup.ssml import ATTRIBUTES, MAX_CHARACTERS, Ssml, SsmlVoice, read_ssml
from processors.text.passages import PLAIN, ProsodyFactors, TextRun
from processors.text.symbols import ARPABET
from utils.errors import InputError

CONTROLS = {"duration", "pitch"}
VOICE = SsmlVoice("FastSpeech2", "en-us", {"en-us", "de"}, CONTROLS, TextConfig(), ARPABET)


def read(content: str, voice=VOICE, strict=True) -> list[list[TextRun]]:
    return read_ssml(Ssml(f"<speak>{content}</speak>", strict), voice)


def shown(block) -> str:
    return "|".join(run.text if run.break_s is None else f"{run.break_s:g} s" for run in block)


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        ("Hello &amp; <![CDATA[bye]]>.", ["Hello & bye."]),
        ("One\n\n  line", ["One line"]),
        (" <s>a</s> <s>b</s> c", ["a", "b", " c"]),
        ("<p>a</p><p>b</p>c", ["a", "0.75 s|b", "0.75 s|c"]),
        ("<p>a</p><break time='1s'/><p>b</p>", ["a", "1 s", "b"]),
    ],
)
def test_text_is_one_run_and_sentences_of_p_and_s_are_their_own(content, blocks):
    assert [*map(shown, read(content))] == blocks


def test_each_element_gives_its_runs():
    (runs,) = read(
        'a<break/><break time="20ms"/><mark name="m"/><sub alias="World Wide">W3</sub>\'s'
        '<phoneme ph="ˈɔɪ">oy</phoneme><say-as interpret-as="digits">12</say-as>'
        '<lang xml:lang="de-DE"> ja</lang><lang xml:lang="en"> no</lang>',
        VOICE._replace(languages={"en-us", "de-DE"}),
    )
    assert shown(runs) == "a|0.5 s|0.02 s||World Wide's|{OY1}|One two| ja| no"
    assert [run.shown for run in runs[4:]] == ["W3's", "oy", "12", None, None]
    assert [run.mark for run in runs if run.mark] == ["m"]
    assert [run.language for run in runs if run.language] == ["de-DE"]
    # an alias starts a sentence as what it stands for would
    w3, eg = '<sub alias="world wide">W3</sub>', '<sub alias="for example">e.g.</sub>'
    (runs,) = read(f"So. {w3} so. <break/>{w3} so {w3} so. {eg}")
    spoken = [run.text for run in runs if run.shown]
    assert spoken == ["World wide", "World wide", "world wide", "for example"]


def test_a_language_is_met_by_the_nearest_of_the_voice():
    voice = VOICE._replace(languages={"de", "en-us", "en-gb", "pt", "pt-br"})
    tags = ("de-DE", "en", "en-GB", "pt-PT", "pt-BR")
    (runs,) = read("".join(f'<lang xml:lang="{tag}">{tag}</lang>' for tag in tags), voice)
    assert [run.language for run in runs] == ["de", None, "en-gb", "pt", "pt-br"]
    with pytest.raises(InputError, match="language 'en-AU': this voice speaks"):
        read('<lang xml:lang="en-AU">a</lang>', voice)
    # a paragraph or a sentence can be in another language
    blocks = read('<p xml:lang="de"><s>ja</s><s xml:lang="en">no</s></p>a')
    spoken = [(block[-1].text, block[-1].language) for block in blocks]
    assert spoken == [("ja", "de"), ("no", None), ("a", None)]


def test_nested_prosody_and_emphasis_multiply():
    (runs,) = read(
        'a<prosody rate="50%" volume="-20dB">b<prosody rate="50%" pitch="+12st">c</prosody>'
        "<emphasis>d</emphasis></prosody>"
    )
    assert [run.text for run in runs] == ["a", "b", "c", "d"]
    factors = [(1, 1, 1), (2, 1, 0.1), (4, 2, 0.1), (2 * 1.12, 1.08, 0.1)]
    assert [run.prosody for run in runs] == factors


def test_unknown_tags_and_attributes_are_errors_or_skipped():
    source = 'a <voice name="x">b</voice> <break time="1s" foo="1"/>c'
    with pytest.raises(InputError, match=r"^line 1, column 10: unknown tag <voice> \(known: speak"):
        read(source)
    with pytest.raises(InputError, match=r"^line 2, column 3: unknown tag <prosodi>; .*prosody"):
        read("\n  <prosodi>a</prosodi>")
    with pytest.raises(InputError, match=r"unknown attribute foo of <break> \(known: time, stren"):
        read('<break foo="1"/>')
    assert read(source, strict=False) == [[TextRun("a b "), TextRun("", break_s=1), TextRun("c")]]


def test_the_attributes_of_real_documents_are_allowed():
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<speak version="1.1" xml:lang="en-US"'
    schema = 'xmlns="http://www.w3.org/2001/10/synthesis" xmlns:xsi="http://www.w3.org/xsi"'
    source = f'\ufeff{head} {schema} xsi:schemaLocation="x y"><!-- note -->Grüße</speak>'
    assert read_ssml(Ssml(source), VOICE) == [[TextRun("Grüße")]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<p>a", "line 1, column 14: not well-formed SSML: mismatched tag"),
        ("a & b", "not well-formed"),
        ("&nbsp;", "not well-formed SSML: undefined entity"),
        ("<speak>a</speak>", "line 1, column 8: <speak>; the root of the document"),
        ("<sub alias='x'><p>a</p></sub>", "<p> in <sub>, which holds no elements"),
        ("<break>a</break>", "text in <break>, which is empty"),
        ("<sub>a</sub>", "<sub> needs the attribute alias"),
        ("<mark/>", "<mark> needs the attribute name"),
        ("<lang>a</lang>", "<lang> needs the attribute xml:lang"),
        ("<phoneme ph='a'/>", "nothing is in <phoneme>"),
        ("<prosody rate='0%'>a</prosody>", "rate: '0%'; expected"),
        ("<prosody rate='1000%'><prosody rate='200%'>a</prosody></prosody>", "more than 10 times"),
        (
            "<prosody volume='+10dB'>" * 3 + "</prosody>" * 3,
            "column 56: <prosody>: rate or pitch ch",
        ),
        ("<break time='10s'/>" * 361, "column 6848: the breaks last more than 1 h in all"),
        ("<lang xml:lang='fr'>a</lang>", "language 'fr': this voice speaks de, en-us"),
        (f"{'<p>' * 32}{'</p>' * 32}", "column 101: elements are nested more than 32 deep"),
    ],
)
def test_wrong_documents_are_refused_at_their_place(content, message):
    with pytest.raises(InputError, match=r"^line 1, column \d+: ") as caught:
        read(content)
    assert message in str(caught.value)


def test_what_a_voice_cannot_do_is_refused():
    voice = VOICE._replace(model="Tacotron2", controls=())
    for attribute, control in (("rate='80%'", "duration"), ("pitch='+1st'", "pitch")):
        with pytest.raises(InputError, match=f"<prosody>: Tacotron2 has no control of {control}"):
            read(f"<prosody {attribute}>a</prosody>", voice)
    assert read("<prosody volume='-20dB'>a</prosody>", voice)
    voice = VOICE._replace(text=TextConfig(phone_extractor="letters"))
    with pytest.raises(InputError, match="this voice reads letters, and has no phones"):
        read("<phoneme ph='a'>a</phoneme>", voice)


def runs_of(source):
    return [run for block in read_ssml(Ssml(source), VOICE) for run in block]


@pytest.mark.parametrize(
    ("source", "expected", "warnings"),
    [
        ("a <break time='1.5'/>b", "a |1.5 s|b", ["column 10: time: '1.5'; .*read as 1.5s"]),
        ("a <break time='15s'/>b", "a |10 s|b", ["10: time: '15s'; .*up to 10s.*as 10s"]),
        ("a <break time='2 Seconds'/>b", "a |2 s|b", ["read as 2s"]),
        ("a <break time='700'/>b", "a |0.7 s|b", ["read as 0.7s"]),
        ("a <break time='long'/>b", "a |0.5 s|b", ["time: 'long'; .*left out"]),
        ("<say-as interpret-as='spell-out'>ab</say-as>", "Ay B", ["'spell-out'; .*as characters"]),
        ("<say-as interpret-as='name'>Al</say-as>", "Al", ["'name'; expected .*; left out"]),
        ("<say-as interpret-as='date'>soon</say-as>", "soon", ["'soon' is no date; left out"]),
        ("Tom & Jo, R&D.", "Tom & Jo, R&D.", ["column 12: a bare &", "column 19: a bare &"]),
        ("a&nbsp;b &eacute;", "a b é", ["column 9: &nbsp; is no entity", "column 17: &eacute;"]),
        ("5 < 6\n<b", "5 < 6 b", ["2, column 1: '<b' has no >", "1, column 10: a bare <"]),
        ("<lang xml:lang='fr'>oui</lang>", "oui", ["column 8: language 'fr': this voice"]),
        ("<lang xml:lang='de_DE'>ja</lang>", "ja", ["read as de-de"]),
        ("<voice name='x'>a</voice>", "a", ["column 8: unknown tag <voice>; only its content"]),
        ("<phoneme alphabet='x-sampa' ph='h@'>a</phoneme>", "a", ["'x-sampa'; .*left out"]),
        ("<phoneme alphabet='cmu-arpabet' ph='AA1'>a</phoneme>", "{AA1}", ["as arpabet"]),
        ("<phoneme ph='ʘ'>a</phoneme>", "a", ["no sound of English: ʘ; left out"]),
        ("<p>a <emphasis>b</p> c", "a |b|0.75 s| c", ["24: <emphasis> has no end before </p>"]),
        ("a</p>b", "ab", ["column 9: </p> ends nothing"]),
        ("a <break time='1s'>b", "a |1 s|b", ["mismatched tag; mended"]),
        ("<sub alias='x'><b>a</b></sub> <sub>c</sub>", "x| c", ["<b> in <sub>", "alias"]),
        ("a & <![CDATA[<b>]]>&amp;<!-- & -->", "a & <b>&", ["column 10: a bare &"]),
    ],
)  # fmt: skip
def test_documents_are_mended_with_a_warning_at_each_place(source, expected, warnings, caplog):
    runs = runs_of(f"<speak>{source}</speak>")
    assert shown(runs).replace("| |", "| ").strip() == expected
    assert len(caplog.messages) == len(warnings)
    for message, warning in zip(caplog.messages, warnings, strict=True):
        assert re.search(warning, message)
        assert re.match(r"line \d+, column \d+: ", message)
    with pytest.raises(InputError, match=r"^line \d+, column \d+: "):
        read_ssml(Ssml(f"<speak>{source}</speak>", strict=True), VOICE)


@pytest.mark.parametrize(
    ("attributes", "prosody"),
    [
        ("rate='1.5'", ProsodyFactors(duration=1 / 1.5)),
        ("rate='0.5x'", ProsodyFactors(duration=2)), ("rate='200'", ProsodyFactors(duration=0.5)),
        ("rate='Slow'", ProsodyFactors(duration=1 / 0.75)),
        ("pitch='110%'", ProsodyFactors(pitch=1.1)), ("pitch='12 st'", ProsodyFactors(pitch=2)),
        ("volume='\u221220 DB'", ProsodyFactors(gain=0.1)),
        ("pitch='+50Hz' rate='50%'", ProsodyFactors(duration=2)),
        ("rate='quick' contour='(0%,+1st)'", PLAIN), ("rate='99999%'", PLAIN),
    ],
)  # fmt: skip
def test_prosody_of_other_programs_is_read_or_left_out(attributes, prosody, caplog):
    (run,) = runs_of(f"<speak><prosody {attributes}>a</prosody></speak>")
    assert run.prosody == pytest.approx(prosody)
    assert len(caplog.messages) == 1 + ("contour" in attributes)


def test_what_is_around_the_root_is_left_out_and_a_missing_one_is_added(caplog):
    document = "Here it is:\n```xml\n<speak>Hi</speak>\n```\nWell?"
    assert runs_of(document) == [TextRun("Hi")]
    assert caplog.messages == [
        "line 1, column 1: 'Here it is: ```xml' outside of <speak> is left out",
        "line 3, column 18: '``` Well?' outside of <speak> is left out",
    ]
    breaks = runs_of("<break time=1s/><break strength=strong/><break time=1s />")
    assert [run.break_s for run in breaks] == [1, 0.75, 1]
    assert runs_of("Hi <break/> you") == [TextRun("Hi "), TextRun("", break_s=0.5), TextRun(" you")]
    for cut in ("<speak>Hi", "<speak>Hi</speak", "<speak>Hi</", "<speak>Hi<break time='1"):
        assert [run.text.strip() for run in runs_of(cut)] == ["Hi"]
    assert [run.text for run in runs_of("<speak>a</speak>\n<speak>b</speak>")] == ["a", "b"]


def test_many_faults_are_counted_and_too_many_refused(caplog):
    assert runs_of(f"<speak>{'& ' * 50}</speak>")
    assert (len(caplog.messages), caplog.messages[-1]) == (11, "SSML: 40 more such places")
    for part in ("& ", "<a", "</p>", "<", "<!--", "<?", "<![CDATA[", '<a b="', "<break/>"):
        start = time.process_time()
        with suppress(InputError):
            runs_of(f"<speak>{part * 10_000}")
        assert time.process_time() - start < 2
    with pytest.raises(InputError, match="line 1, column 2008: more than 1000 faults; is it SSML"):
        runs_of(f"<speak>{'& ' * 2000}")


BOMB = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))


@pytest.mark.parametrize(
    "declaration",
    [
        f'<!DOCTYPE speak [<!ENTITY e0 "ha">{BOMB}]><speak>&e9;</speak>',
        '<!DOCTYPE speak [<!ENTITY x SYSTEM "file:///etc/passwd">]><speak>&x;</speak>',
        '<!DOCTYPE speak SYSTEM "http://127.0.0.1:1/x.dtd"><speak>a</speak>',
        '<!DOCTYPE speak [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><speak>a</speak>',
    ],
)
def test_document_types_and_their_entities_are_refused_unread(declaration):
    for source in (declaration, f"So: {declaration}"):
        with pytest.raises(InputError, match=r"^line 1, column \d+: a document type .* not allow"):
            read_ssml(Ssml(source), VOICE)


def test_long_documents_are_refused_at_once_and_the_longest_is_read_in_time():
    with pytest.raises(InputError, match="at most 1000000 are read"):
        read("a" * MAX_CHARACTERS)
    start = time.process_time()
    assert len(read("<p>a</p>" * 10_000)) == 10_000
    assert len(read("a<break time='1ms'/>" * 10_000)[0]) == 20_000
    assert time.process_time() - start < 5


def test_the_documentation_lists_the_elements():
    text = (Path(__file__).parents[4] / "docs" / "ssml.md").read_text(encoding="utf-8")
    text = text.split("## What is mended")[0]
    cells = (line.split("|")[1] for line in text.splitlines() if line.startswith("| "))
    listed = {name for cell in cells for name in re.findall(r"`([a-z-]+)`", cell)}
    assert listed == set(ATTRIBUTES)
