from processors.text.word_spans import share_phones


def test_groups_that_match_words_one_to_one_are_kept():
    groups = [("a",), ("b", "c")]
    assert share_phones(["x", "y"], groups, [("a",), ("b", "d")]) == groups


def test_a_joined_group_is_parted_where_the_words_meet():
    groups = [("ʌ", "v", "ð", "ə"), ("k", "ˈæ", "t")]
    alone = [("ˈʌ", "v"), ("ð", "ˈə"), ("k", "ˈæ", "t")]
    assert share_phones(["of", "the", "cat"], groups, alone) == [
        ("ʌ", "v"),
        ("ð", "ə"),
        ("k", "ˈæ", "t"),
    ]


def test_reduced_vowels_stay_with_their_word():
    groups = [("h", "ɐ", "v", "b", "ɪ", "n")]
    alone = [("h", "ˈæ", "v"), ("b", "ˈiː", "n")]
    assert share_phones(["have", "been"], groups, alone) == [("h", "ɐ", "v"), ("b", "ɪ", "n")]


def test_a_number_takes_all_its_groups():
    groups = [("t", "w", "ɛ"), ("f", "aɪ", "v"), ("aʊ", "l", "z")]
    alone = [("t", "w", "ɛ", "f", "aɪ", "v"), ("aʊ", "l", "z")]
    assert share_phones(["25", "owls"], groups, alone) == [groups[0] + groups[1], groups[2]]


def test_a_part_and_a_join_that_cancel_out_are_not_confused():
    groups = [("t", "w"), ("f", "v"), ("ʌ", "v", "ð", "ə")]
    alone = [("t", "w", "f", "v"), ("ʌ", "v"), ("ð", "ə")]
    assert share_phones(["25", "of", "the"], groups, alone) == alone


def test_no_word_is_left_without_phones():
    alone = [("a", "b"), ("h",), ("k", "t")]
    shared = share_phones(["x", "y", "z"], [("a", "b", "k", "t")], alone)
    assert all(shared)
    assert len(shared) == 3


def test_phones_between_two_words_go_to_one_of_them():
    groups = [("a", "b"), ("x",), ("c", "d")]
    shared = share_phones(["p", "q"], groups, [("a", "b"), ("c", "d")])
    assert shared == [("a", "b", "x"), ("c", "d")]


def test_words_that_espeak_never_says_stay_empty():
    assert share_phones(["p", "q"], [("a",)], [(), ()]) == [(), ()]
    assert share_phones(["p", "q"], [], [("a",), ("b",)]) == [("a",), ("b",)]
