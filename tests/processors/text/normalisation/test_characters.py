from processors.text.normalisation.characters import clean_characters, to_ascii_letters


def test_control_and_format_characters_are_stripped():
    assert clean_characters("a\x00b\u200b c\u202e\td\n\ue000") == "ab c d"
    assert clean_characters("\ud800lone surrogate") == "lone surrogate"


def test_fractions_do_not_melt_into_the_number_before():
    assert clean_characters("1½ and 2¾") == "1 1/2 and 2 3/4"


def test_accents_go_and_ligatures_part():
    assert to_ascii_letters("Čapek, naïve, Æsop, straße") == "Capek, naive, Aesop, strasse"


def test_powers_do_not_melt_into_their_base():
    assert clean_characters("10⁶, 10⁻³ and m²") == "10^6, 10^-3 and m^2"


def test_a_minus_sign_is_told_from_a_hyphen_and_a_dash():
    assert clean_characters("\u22125, 7\u22122, –3") == "\u2212 5, 7 \u2212 2, \u2212 3"
    assert clean_characters("5–10 – so") == "5–10 – so"


def test_variants_of_a_sign_are_stripped():
    assert clean_characters("❤️ 5️⃣ 👍🏽") == "❤ 5 👍"
