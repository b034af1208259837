"""Formulas of LaTeX in words, as texts of language models have them."""

import time

import pytest

from processors.text.latex import say_formulas
from processors.text.normalisation.english import normalise_english


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"So $$\int_0^1 x^2 \, dx = \frac{1}{3}$$.",
         "So the integral from zero to one of X squared D X equals one over three."),
        (r"\( \frac{a+b}{2} \geq \sqrt{ab} \)",
         "A plus B over two greater than or equal to root A B"),
        (r"\[ \sum_{i=1}^{n} i = \frac{n(n+1)}{2} \]",
         "the sum from I equals one to N of I equals N, N plus one, over two"),
        (r"$v = \frac{\text{distance}}{\text{time}}$ if $x \in \mathbb{R}$.",
         "V equals distance over time if X in R."),
        (r"\[ \lim_{x \to 0} \frac{\sin x}{x} = 1 \]",
         "the limit as X to zero of sin X over X equals one"),
        (r"$e^{i\pi} + 1 = 0$ and $y_{1} = \alpha$",
         "E to the power of I pi, plus one equals zero and Y one equals alpha"),
        (r"$$x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}$$",
         "X equals minus B plus or minus root B squared minus four A C over two A"),
        (r"\(5 \text{ km} \times 2\)", "five kilometers times two"),
        (r"\(90^\circ\) and \(f \circ g\)", "ninety degrees and F composed with G"),
        ("The formula $$a + b$$ holds.", "The formula A plus B holds."),
        ("It costs $5 and she gets $10.", "It costs five dollars and she gets ten dollars."),
        (r"C:\new and \frac{1}{2}", "C colon backslash new and backslash frac, one, two,"),
    ],
)  # fmt: skip
def test_formulas_are_read_in_one_line(text, said):
    assert normalise_english(say_formulas(text).translate(str.maketrans("{}", "()"))) == said


@pytest.mark.parametrize("part", ["$$", r"\[", r"\(", r"$\a", r"\frac{", "${", r"$\frac{a}{b}$ "])
def test_formulas_without_an_end_take_no_quadratic_time(part):
    start = time.process_time()
    say_formulas(part * (20_000 // len(part)))
    assert time.process_time() - start < 2
