"""The Quart application behind the layer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, cast

from quart import Blueprint, Quart, Response, abort, request
from quart.routing import QuartRule
from quart.sessions import SecureCookieSessionInterface
from quart.wrappers import BaseRequestWebsocket
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WerkzeugResponse

from .answers import ErrorMap, Plain, http_error
from .dispatch import EXCHANGE, Dispatcher, Endpoint, Exchange


class NoSessions(SecureCookieSessionInterface):
    """No cookies: nothing here is remembered in a browser."""

    async def open_session(
        self,
        app: Quart,  # noqa: ARG002 - Quart's signature
        request: BaseRequestWebsocket,  # noqa: ARG002 - likewise
    ) -> None:
        """Open none; Quart puts its null session in."""
        return


class LateRule(QuartRule):
    """A rule that makes what builds its URLs when a URL of it is first built.

    Werkzeug compiles two functions for every rule that is added. For the 160 rules of
    a daemon that took most of its first request, and hardly anybody builds a URL.
    """

    def _compile_builder(
        self,
        append_unknown: bool = True,  # noqa: FBT001, FBT002 - as Werkzeug calls it
    ) -> Callable[..., tuple[str, str]]:
        # A private part of Werkzeug: a newer one that names it otherwise compiles at
        # once again, which is slow and not wrong.
        make = cache(super()._compile_builder)

        def build(rule: LateRule, /, **values: object) -> tuple[str, str]:
            return make(append_unknown)(rule, **values)

        return build


def create_app(errors: ErrorMap, ours: set[str]) -> Quart:
    """Make the application: no files, no cookies, errors as JSON.

    Args:
        errors: The error map.
        ours: The names of the blueprints that are made of route groups.
    """
    app = Quart("agenthost", static_folder=None, template_folder=None)
    app.url_rule_class = LateRule
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
        if request.blueprint in ours or request.endpoint is None:
            return
        exchange = current_exchange()
        found = exchange.found
        if not isinstance(found, Endpoint) or found.quart_name != request.endpoint:
            abort(404)
        if exchange.admission is not None:
            exchange.admission.check()

    app.before_request(as_it_was_found)
    app.register_error_handler(HTTPException, on_http_error)
    app.register_error_handler(Exception, on_error)
    return app


def current_exchange() -> Exchange:
    """The exchange of the request that Quart is serving."""
    scope = cast("dict[str, Any]", request.scope)
    exchange: Exchange = scope[EXCHANGE]
    return exchange


def respond(plain: Plain) -> Response:
    """An answer as Quart sends it."""
    headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in plain.headers}
    return Response(plain.body, status=plain.status, headers=headers)


def blueprint(
    name: str, routes: Sequence[Endpoint], dispatcher: Dispatcher
) -> Blueprint:
    """Make the blueprint of a route group."""
    made = Blueprint(name, "agenthost_front")
    for number, endpoint in enumerate(routes):
        made.add_url_rule(
            endpoint.template.quart,
            endpoint=f"{endpoint.route.method.lower()}_{number}",
            view_func=_view(endpoint, dispatcher),
            methods=[endpoint.route.method],
        )
    return made


def _view(
    endpoint: Endpoint, dispatcher: Dispatcher
) -> Callable[..., Awaitable[Response]]:
    names = endpoint.template.names

    async def view(**values: str) -> Response:
        exchange = current_exchange()
        if exchange.found is not endpoint:
            # Quart also takes //path for /path; cost and limits were not asked. And
            # it knows routes that are not there now.
            abort(404)
        texts = [values[name] for name in names]
        outcome = await dispatcher.perform(endpoint, exchange, texts)
        if isinstance(outcome, Plain):
            return respond(outcome)
        exchange.stream = outcome
        return Response(b"")

    return view


def _in_words(error: HTTPException) -> str:
    if error.code == 404:
        return f"not found: {request.path}"
    if error.code == 405:
        return f"method {request.method} is not allowed for {request.path}"
    return (error.name or "refused").lower()
