"""How the pages of these rules are made."""

from __future__ import annotations

from hlofuse.rules.catalogue import Rule, register


def rewrites(
    code: str, pass_name: str, title: str, *, condition: str, why: str, advice: str, mirrors: str
) -> Rule:
    """What a pass makes; XLA leaves the pass out where `--xla_disable_hlo_passes` names it."""
    return register(
        Rule(
            code=code,
            title=title,
            condition=condition,
            why=why,
            advice=advice,
            mirrors=mirrors,
            allows=True,
            outcome=True,
            pass_name=pass_name,
            flag=f"--xla_disable_hlo_passes={pass_name}",
        )
    )


def cuts(
    code: str, pass_name: str, title: str, *, condition: str, why: str, advice: str, mirrors: str
) -> Rule:
    """Where a pass stops to take in more; XLA logs nothing."""
    return register(
        Rule(
            code=code,
            title=title,
            condition=condition,
            why=why,
            advice=advice,
            mirrors=mirrors,
            outcome=True,
            pass_name=pass_name,
            flag=f"--xla_disable_hlo_passes={pass_name}",
        )
    )
