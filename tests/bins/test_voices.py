from bins.voices import main


def test_each_voice_is_a_line_with_language_size_and_licence(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["arion voices"])
    main()
    line = next(line for line in capsys.readouterr().out.splitlines() if "kathleen" in line)
    assert line.startswith("kathleen  en-us  1 speaker  9 MB  licence cc0-1.0  ")
    assert line.endswith("egs/_voices/kathleen")
