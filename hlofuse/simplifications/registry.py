"""Simplifications by target: the pipelines that run ahead of fusion."""

from __future__ import annotations

import importlib

from hlofuse.simplifications.base import Pipeline

_PIPELINES = {
    "cpu": "hlofuse.simplifications.cpu_pipeline:CPU",
}


def pipelines_of(target: str) -> tuple[Pipeline, ...]:
    """What runs ahead of fusion, in order; nothing for a target of which it is not known."""
    where = _PIPELINES.get(target)
    if where is None:
        return ()
    module, _, name = where.partition(":")
    found: tuple[Pipeline, ...] = getattr(importlib.import_module(module), name)
    return found
