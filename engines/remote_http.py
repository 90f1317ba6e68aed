"""HTTP to a server that somebody else may run: with its headers and its certificate's authority."""

import ssl
from typing import Any

import httpx

from engines.base import Server
from engines.errors import EngineEnvironmentError, EngineError
from engines.headers import header_values
from engines.vllm_http import PLAIN, TIMEOUT


def server_client(server: Server) -> httpx.Client:
    """Return a client for control requests to `server`: its headers, no proxies from the environment.

    Raises:
        EngineEnvironmentError: a header's variable is not set, or the CA file is none.
    """
    verify = PLAIN
    if server.url.startswith("https:"):
        try:
            verify = ssl.create_default_context(cafile=server.ca_file)
        except (OSError, ssl.SSLError) as error:
            message = (
                f"engine.flags.ca_file is {server.ca_file}: {error}; it has to be a PEM file with the "
                "authority's certificate"
            )
            raise EngineEnvironmentError(message) from error
    headers = header_values(server.header_variables)
    return httpx.Client(timeout=TIMEOUT, trust_env=False, verify=verify, headers=headers)


def get_text(server: Server, path: str) -> str | None:
    """Return the text at `path`; None where the server has no such page, or not for us.

    Raises:
        EngineError: no answer, or one that says that the server is unwell.
    """
    answer = _get(server, path)
    return None if answer.is_client_error else answer.text


def get_json(server: Server, path: str, **params: str) -> Any:
    """Return the JSON at `path`; None where there is none, or not for us.

    Raises:
        EngineError: as `get_text`.
    """
    answer = _get(server, path, **params)
    if answer.is_client_error:
        return None
    try:
        return answer.json()
    except ValueError:
        return None


def required_text(server: Server, path: str) -> str:
    """Return the text at `path`.

    Raises:
        EngineError: no answer, or no such page.
    """
    text = get_text(server, path)
    if text is None:
        message = f"{server.url} has no page {path}"
        raise EngineError(message)
    return text


def post_status(server: Server, path: str, patience: float) -> int:
    """Post nothing to `path` and return the status of the answer, which may take `patience` seconds.

    Raises:
        EngineError: no answer.
    """
    try:
        with server_client(server) as client:
            return client.post(server.url + path, timeout=patience).status_code
    except httpx.HTTPError as error:
        message = f"{server.url}{path} did not answer: {error or type(error).__name__}"
        raise EngineError(message) from error


def _get(server: Server, path: str, **params: str) -> httpx.Response:
    try:
        with server_client(server) as client:
            answer = client.get(server.url + path, params=params)
            onward = answer.next_request
            if onward is not None and onward.url.netloc == answer.request.url.netloc:
                answer = client.send(onward)  # a slash more or less; headers are shown to nobody else
    except httpx.HTTPError as error:
        message = f"{server.url}{path} did not answer: {error or type(error).__name__}"
        raise EngineError(message) from error
    if not (answer.is_success or answer.is_client_error):
        message = f"{server.url}{path} did not answer: HTTP status {answer.status_code}"
        raise EngineError(message)
    return answer
