"""Texts with markup as runs of text: Markdown, HTML, and a subset of SSML 1.1 (W3C)."""

from typing import Literal

Format = Literal["auto", "text", "markdown", "html", "ssml"]
SUFFIXES: dict[str, Format] = {
    ".md": "markdown", ".html": "html", ".htm": "html", ".xhtml": "html", ".ssml": "ssml"
}  # fmt: skip
