"""The Quart application behind the layer."""

from __future__ import annotations

from typing import Any, cast

from quart import Quart, Request, Response, abort, request
from quart.ctx import RequestContext
from quart.routing import QuartRule
from quart.sessions import SecureCookieSessionInterface
from quart.wrappers import BaseRequestWebsocket
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WerkzeugResponse

from .answers import ErrorMap, Plain, http_error
from .dispatch import EXCHANGE, Dispatcher, Endpoint, Exchange

OURS = QuartRule("/", endpoint="agenthost")
"""Stands for the routes of all groups; it is in no map."""


class NoSessions(SecureCookieSessionInterface):
    """No cookies: nothing here is remembered in a browser."""

    async def open_session(
        self,
        app: Quart,  # noqa: ARG002 - Quart's signature
        request: BaseRequestWebsocket,  # noqa: ARG002 - likewise
    ) -> None:
        """Open none; Quart puts its null session in."""
        return


class FoundContext(RequestContext):
    """A request whose route the layer has found: Quart's map need not know it, too.

    To add the 170 routes of a daemon to the map took most of its first request.
    """

    def match_request(self) -> None:
        """Take over what was found; what no route group brought is Quart's to find."""
        found = exchange_of(self.request).found
        if isinstance(found, Endpoint) and found.quart_name is None:
            self.request.url_rule, self.request.view_args = OURS, {}
        else:
            super().match_request()


class Behind(Quart):
    """Quart behind the layer."""

    def request_context(self, request: Request) -> RequestContext:
        """Begin a request."""
        return FoundContext(self, request)


def create_app(errors: ErrorMap, dispatcher: Dispatcher) -> Quart:
    """Make the application: no files, no cookies, errors as JSON.

    Args:
        errors: The error map.
        dispatcher: What runs the handlers of route groups.
    """
    app = Behind("agenthost", static_folder=None, template_folder=None)
    app.session_interface = NoSessions()
    app.config.update(BODY_TIMEOUT=15, RESPONSE_TIMEOUT=None)
    app.url_map.merge_slashes = False

    async def on_http_error(error: HTTPException) -> Response | WerkzeugResponse:
        response = error.get_response()
        if error.code is None or error.code < 400:
            return response
        kept = {k: v for k, v in response.headers.items() if k in {"Allow"}}
        return respond(http_error(error.code, _in_words(error), kept))

    async def on_error(error: Exception) -> Response:
        return respond(errors.answer(error, current_exchange().request_id))

    async def as_it_was_found() -> None:
        # Cost, limits and access were asked for the route that the layer found.
        if request.endpoint in {None, OURS.endpoint}:
            return
        exchange = current_exchange()
        found = exchange.found
        if not isinstance(found, Endpoint) or found.quart_name != request.endpoint:
            abort(404)
        if exchange.admission is not None:
            exchange.admission.check()

    async def ours() -> Response:
        exchange = current_exchange()
        endpoint = cast("Endpoint", exchange.found)
        outcome = await dispatcher.perform(endpoint, exchange, exchange.texts)
        if isinstance(outcome, Plain):
            return respond(outcome)
        exchange.stream = outcome
        return Response(b"")

    app.view_functions[OURS.endpoint] = ours
    app.before_request(as_it_was_found)
    app.register_error_handler(HTTPException, on_http_error)
    app.register_error_handler(Exception, on_error)
    return app


def current_exchange() -> Exchange:
    """The exchange of the request that Quart is serving."""
    return exchange_of(request)


def exchange_of(asked: Request) -> Exchange:
    """The exchange of a request."""
    scope = cast("dict[str, Any]", asked.scope)
    exchange: Exchange = scope[EXCHANGE]
    return exchange


def respond(plain: Plain) -> Response:
    """An answer as Quart sends it."""
    headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in plain.headers}
    return Response(plain.body, status=plain.status, headers=headers)


def _in_words(error: HTTPException) -> str:
    if error.code == 404:
        return f"not found: {request.path}"
    if error.code == 405:
        return f"method {request.method} is not allowed for {request.path}"
    return (error.name or "refused").lower()
