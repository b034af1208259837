"""Long recordings and their text to a corpus of clips, cut at pauses.

`texts` reads what is spoken, `recognition` recognises words by a language model of that text,
`matching` finds them in the text and chooses `clips`, `checking` aligns these, and `writing` writes
them.
"""
