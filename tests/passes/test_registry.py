"""The registry of passes: each name leads to the pass that has it, and no pass is missing."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import hlofuse.passes
from hlofuse.passes.base import Pass
from hlofuse.passes.registry import PassLists, pass_class, pass_names, places_of
from hlofuse.pipelines.targets import TARGETS
from hlofuse.rules.catalogue import catalogue

NAMED_BY_ANOTHER = {"CublasGemmRewriterF8"}
"""XLA runs two passes of one name."""


@pytest.mark.parametrize("target", ["", *TARGETS])
def test_a_name_leads_to_the_pass_of_that_name(target: str) -> None:
    assert pass_names(target) <= set(places_of(target))
    for name in set(places_of(target)):
        kind = pass_class(name, target)
        assert kind is not None
        assert getattr(kind, "name", None) == name or name == "float-normalization-bf16"


def test_every_pass_is_registered() -> None:
    kinds = {pass_class(name, target) for target in ("", *TARGETS) for name in set(places_of(target))}
    for module in pkgutil.walk_packages(hlofuse.passes.__path__, "hlofuse.passes."):
        for found in vars(importlib.import_module(module.name)).values():
            is_pass = isinstance(found, type) and issubclass(found, Pass) and found.__module__ == module.name
            if is_pass and isinstance(found.__dict__.get("name"), str) and not found.__subclasses__():
                assert found in kinds or found.__name__ in NAMED_BY_ANOTHER


def test_a_rule_of_a_pass_names_one_that_is_registered() -> None:
    names = {name for target in ("", *TARGETS) for name in set(places_of(target))}
    assert {rule.pass_name for rule in catalogue().values() if rule.pass_name} <= names


def test_a_list_with_an_unknown_pass_is_a_fault() -> None:
    with pytest.raises(ValueError, match="no pass 'dec' for target 'cpu'"):
        PassLists("cpu", {}).pipeline("clean-up", "dce", "dec")
