"""The HTTP server of voices: OpenAI's speech endpoint, a page, limits. Needs the extra `serve`."""
