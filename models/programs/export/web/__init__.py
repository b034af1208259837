"""Voices that speak in a browser, offline: a folder for any static file server."""
