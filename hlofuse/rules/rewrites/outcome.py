"""How the pages of these rules are made."""

from functools import partial

from hlofuse.rules.catalogue import Rule, outcome


def rewrites(
    code: str,
    pass_name: str,
    title: str,
    *,
    condition: str,
    why: str,
    advice: str = "",
    mirrors: str,
    allows: bool = True,
    essential: bool = False,
) -> Rule:
    """What a pass makes; XLA leaves the pass out where `--xla_disable_hlo_passes` names it.

    Without an `essential` pass, the program would be compiled to something else, or not at all.
    """
    return outcome(
        code=code,
        title=title,
        condition=condition,
        why=why,
        advice=advice,
        mirrors=mirrors,
        allows=allows,
        essential=essential,
        pass_name=pass_name,
        flag="" if essential else f"--xla_disable_hlo_passes={pass_name}",
    )


cuts = partial(rewrites, allows=False)
"""Where a pass stops to take in more; XLA logs nothing."""
