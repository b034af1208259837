from processors.text.normalisation.rules import apply, rule


def test_rules_are_applied_in_order_and_know_only_ascii_digits():
    rules = (rule(r"a", "b"), rule(r"b(\d)", lambda match: f"<{match[1]}>"))
    assert apply(rules, "a1 b2 a٣") == "<1> <2> b٣"
