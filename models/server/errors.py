"""Errors of the API, in OpenAI's JSON shape."""

import json
from collections.abc import Mapping

from starlette.responses import Response


class ApiError(Exception):
    """A request that is refused.

    Args:
        status: Of HTTP.
        message: What was found, what is expected.
        param: Field of the request.
        code: For programs.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self._headers = headers
        kind = "server_error" if status >= 500 else "invalid_request_error"
        self._error = {"message": message, "type": kind, "param": param, "code": code}

    def response(self) -> Response:
        """The error as a response; ASCII, since a request may hold what is no Unicode."""
        body = json.dumps({"error": self._error})
        return Response(body, self.status, self._headers, "application/json")
