from processors.text.normalize.characters import clean_characters, to_ascii_letters


def test_control_and_format_characters_are_stripped():
    assert clean_characters("a\x00b\u200b c\u202e\td\n\ue000") == "ab c d"
    assert clean_characters("\ud800lone surrogate") == "lone surrogate"


def test_fractions_do_not_melt_into_the_number_before():
    assert clean_characters("1½ and 2¾") == "1 1/2 and 2 3/4"


def test_accents_go_and_ligatures_part():
    assert to_ascii_letters("Čapek, naïve, Æsop, straße") == "Capek, naive, Aesop, strasse"
