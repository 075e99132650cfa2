"""The catalogue of models: list them, find one by any of its names."""

from __future__ import annotations

from collections.abc import Iterator

from agenthost import (
    Answer,
    Call,
    Host,
    ModelFacts,
    NotFound,
    RouteGroup,
    did_you_mean,
)

from .catalogue_shapes import (
    AliasList,
    ModelDetail,
    ModelFilter,
    ModelItem,
    ModelList,
)

routes = RouteGroup("catalogue")


@routes.get("/api/models", scope="models:read", query=ModelFilter, answer=ModelList)
async def list_models(call: Call, query: ModelFilter) -> Answer:
    """List the models of all providers, or of those asked for."""
    rows = [
        row
        for row in (_item(call.host, model) for model in _models(call.host))
        if query.provider in {None, row["provider"]}
        and query.tier in {None, row["tier"]}
        and query.available in {None, row["available"]}
    ]
    return {"models": rows, "total": len(rows)}


@routes.get("/api/models/aliases", scope="models:read", answer=AliasList)
async def list_aliases(call: Call) -> Answer:
    """List every short name and the id it stands for, sorted."""
    host = call.host
    aliases = {
        alias: _id(host, target.model)
        for model in _models(host)
        for alias in model.aliases
        if (target := host.models.find(alias))
    }
    return {"aliases": dict(sorted(aliases.items())), "total": len(aliases)}


@routes.get("/api/models/<path:model_id>", scope="models:read", answer=ModelDetail)
async def get_model(call: Call, model_id: str) -> Answer:
    """Show a model by id or alias; a retired id leads to its successor."""
    host = call.host
    target = host.models.find(model_id)
    if target is None:
        hint = did_you_mean(model_id, _names(host))
        raise NotFound("model", f"{model_id[:100]} is not in the catalogue{hint}")
    item, notice = _item(host, target.model), target.model.notice(model_id)
    return {**item, "warning": notice} if notice else item


def _models(host: Host) -> Iterator[ModelFacts]:
    for spec in host.models.providers.values():
        yield from spec.facts.models


def _names(host: Host) -> Iterator[str]:
    for model in _models(host):
        yield from (model.id, *model.aliases, *model.replaces)


def _id(host: Host, model: ModelFacts) -> str:
    """Write an id that leads to this model, also where two providers have the same."""
    found = host.models.find(model.id)
    unique = found is not None and found.names == (model.provider, model.id)
    return model.id if unique else f"{model.provider}/{model.id}"


def _item(host: Host, model: ModelFacts) -> ModelItem:
    return {
        "id": _id(host, model),
        "provider": model.provider,
        "display_name": model.display_name,
        "tier": model.tier,
        "context_window": model.context_window,
        "max_output": model.max_output,
        "input_cost_per_1m": model.input_cost_per_1m,
        "output_cost_per_1m": model.output_cost_per_1m,
        "cached_input_cost_per_1m": model.cached_input_cost_per_1m,
        "supports_tools": model.supports_tools,
        "supports_vision": model.supports_vision,
        "supports_streaming": model.supports_streaming,
        "supports_thinking": model.supports_thinking,
        "supports_documents": model.documents,
        "always_thinks": model.always_thinks,
        "efforts": list(model.efforts),
        "aliases": list(model.aliases),
        "available": host.models.auth_status(model.provider) != "missing",
        "status": model.status,
        "deprecation_date": model.deprecation_date,
        "replaced_by": model.replaced_by,
    }
