"""The page that speaks: of the server, and of voices exported for browsers.

It imports `speech.js`, which is another file for each of them and exports two functions:
`listVoices()` resolves to `{sampleRate, voices: [{id, languages}]}`;
`speak({text, voice, speed, pitch}, signal)` yields `{wav, words, subtitles}`: samples (n,), the
words `{word, start, end}` that are new, in seconds, and once the subtitles, if there are any.
"""

from pathlib import Path

PAGE = Path(__file__).with_name("page.html")
