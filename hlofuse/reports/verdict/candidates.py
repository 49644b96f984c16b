"""Possible changes, tried on the module: recipes, flags, and rules that no program can avoid."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from math import inf
from time import process_time

from hlofuse.account import Account, Observed, observed_replay
from hlofuse.account.account import least_saving, replaces_all, saving_in_cache, share_of_change
from hlofuse.account.measured import share
from hlofuse.account.replaying import compiled as compiled_with
from hlofuse.account.replaying import final_account
from hlofuse.analysis.cost import Cost
from hlofuse.analysis.custom_calls import is_divided
from hlofuse.compilation import Compilation, CompilationInput, ReplayConfig, replay_config
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.format.paths import is_gradient
from hlofuse.ir import (
    HlofuseError,
    Instruction,
    Json,
    Module,
    Record,
    Strings,
    copy_module,
    grouped,
    replace,
    with_trait,
)
from hlofuse.ir.opcodes import values
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.common import make
from hlofuse.passes.dce import HloDCE
from hlofuse.pipelines.flags import DISABLED, YNN_KINDS, joined, merged
from hlofuse.pipelines.gpu.before_fusion import ALGSIMP_LAYOUTS, has_triton, pass_lists
from hlofuse.pipelines.targets import OPTION_FLAGS, TARGETS, Stage, before_fusion
from hlofuse.reports.advice.catalogue import RECIPES, WRITTEN
from hlofuse.reports.advice.loops import LOOPS, is_own
from hlofuse.reports.advice.recipe import Finding, Recipe, Situation, Unoptimized
from hlofuse.reports.advice.written import prepared
from hlofuse.reports.common.facts import Facts, kernels_of, place_of
from hlofuse.reports.common.model import Place, lines_of
from hlofuse.reports.explain.explain import blocking_rules_of
from hlofuse.reports.whatif.model import Ranking, Trial, trial_of
from hlofuse.trace import Recorder
from .cut import Cutter
from .model import Suggestion

_GAIN_OF_RULE = 0.01  # the part of the time from which a limitation of XLA is of interest
_GAIN_OF_FLAG = 0.05  # the part of the time that a flag has to save
_GAIN_OF_BARRIER = 0.16  # the same for a barrier on a CPU: four of 8 to 15% saved 3% at most, measured
_ROUNDING = 1e-9  # the part of the time by which sums of the same numbers differ
_KINDS = 8  # different places in which a change to a large module is tried
_TOGETHER = 5  # suggestions that are tried together
OPTIONAL = values("""
    small-while-loop-hoisting simplify-while-loops while-loop-invariant-code-motion
    while-loop-constant-sinking dot-library-rewriter gemv-rewriter
    tree_reduction_rewriter reduction-splitter copy_fusion multi_output_fusion computation-deduplicator
    triton-softmax-rewriter triton-gemm-rewriter splitk-rewriter dot-merger dot-strength-reduction
    reshape-mover convert-mover slice-sinker transpose-folding sort-iota-fusion
    move_copy_to_users logistic-expander
    """)  # Passes that no program needs: XLA compiles to the same values without them
SILENT = with_trait("free")
_UPDATES = ("dynamic-update-slice", "scatter")
_UNPROVED = 0.15  # the part of the time below which a gain may be a loss: half of such loops were slower
UNKNOWN = Trial(None, "not tried", None, 0, 0, 0)


class Budget:
    """Seconds of processor time that trials may take; what is compiled in them is compiled once."""

    def __init__(self, seconds: float, observed: Observed) -> None:
        self.skipped, self.observed = 0, observed
        self.prepared, self.compiled = cache(prepared), cache(partial(compiled, observed))
        self.rewritten = dict[str, Module]()
        self._begun, self._longest = process_time(), 0.0
        self._end = self._begun + seconds

    def allows(self) -> bool:
        """True if another trial fits in, if it takes as long as the longest one until now."""
        now = process_time()
        self._longest = max(self._longest, now - self._begun)
        self._begun = now
        fits = now + self._longest <= self._end
        self.skipped += not fits
        return fits


def comparable(observed: Observed, written: Module | None) -> Module | None:
    """The module before optimizations, if its figures are of as many devices as the replay's; else None."""
    if written is None or not is_divided(written):
        return written
    earlier = observed.replay.input.lowering
    lowering = Compilation.of(written, Stage.BEFORE, observed.replay.config, earlier)
    return written if lowering.before.devices == 1 else None


def of_recipes(
    situation: Situation,
    observed: Observed,
    written: Module | None,
    budget: Budget | None,
) -> Iterator[Suggestion]:
    """One for each recipe that applies; with a `budget` it is tried, else on the kernels around its places.
    Without a trial where nothing can be tried. `written` is the module before optimizations: no recipe
    applies to an operation that a pass created."""
    cutter = Cutter(situation.facts)
    before = situation.facts.before
    in_program = {_of_size(x) for x in written.instructions()} if written is not None else None
    for recipe in RECIPES:
        if recipe.name in WRITTEN and (written is not None or budget is None):
            continue
        findings = list(recipe.find(situation))
        if in_program is not None:
            places = [(f, before[f.at]) for f in findings]
            findings = [f for f, x in places if x.opcode not in _CREATED or _of_size(x) in in_program]
        if not findings:
            continue
        trial, touched = None, 0.0
        if budget is not None and recipe.rewrite is not None and budget.allows():
            attempt = tried(observed.replay.input, observed.replay.config, recipe, findings, observed.cache)
            if attempt is None:
                continue
            findings = list(attempt[1])
            accounts = situation.facts.account_replayed, final_account(attempt[0])
            trial = _stated(*accounts, "replayed", recipe.unrolls and written is None)
            touched = share_of_change(*accounts) if trial.has_no_time else 0.0
        elif budget is None and (around := tried_around(recipe, findings, observed, cutter)) is not None:
            trial, findings = around
        if trial is None:
            touched = cutter.touched(findings)
        if trial is not None and recipe.unrolls and situation.backend == "cpu":
            trial = _of_large_gain(trial, may_lose=False)
        found = [situation.facts.place(f.at) for f in findings]
        gradient = _gradient(found, situation.module)
        alone = bool(gradient) and gradient.isdisjoint(f.at for f in findings)
        rule, change = next((f.rule for f in findings if f.rule), ""), (recipe, tuple(findings))
        lines, trial = lines_of(found), trial or UNKNOWN
        yield Suggestion(
            "code", recipe.text, rule, lines, len(found), trial, recipe.name, "", touched, alone, change
        )


def _stated(before: Account, after: Account, how: str, unrolls: bool) -> Trial:
    """The trial of a change, without a small gain that may be an error of the estimates on a CPU, and
    without one that rests on iterations which pass on in registers what the cache held before."""
    trial = trial_of(before.totals, after.totals, how, (before, after))
    if least_saving(before, after) <= 0:
        trial = _of_large_gain(trial, may_lose=False)
    saved = trial.us_saved or 0.0
    if unrolls and saved > 0 and saving_in_cache(before, after) > (1 - _UNPROVED) * saved:
        return replace(trial, us_saved=None, scaled_us_saved=None, has_more_code=True)
    return trial


def _of_large_gain(trial: Trial, may_lose: bool) -> Trial:
    """The trial, without a time that may be a loss; a time that is one stays, unless it `may_lose`."""
    us = trial.us_saved
    after = trial.totals
    if us is None or after is None or us > _UNPROVED * (us + (after.us or 0.0)) or not (may_lose or us > 0):
        return trial
    return replace(trial, us_saved=None, scaled_us_saved=None, has_more_code=True)


def of_written(original: Account, written: Module, budget: Budget) -> Iterator[Suggestion]:
    """The recipes that are changed in the module before optimizations, each compiled from there."""
    for found, trial in _tried_in_written(original, written, rewritten, budget):
        rewriting = WRITTEN[found.recipe.name]
        if rewriting.rough and trial is not UNKNOWN:
            trial = replace(trial, roughly_timed=rewriting.rough)
        yield found.suggestion(trial if rewriting.is_timed else _of_large_gain(trial, may_lose=True))


def with_loops_of_written(
    suggestions: Sequence[Suggestion], original: Account, written: Module, budget: Budget
) -> list[Suggestion]:
    """The suggestions, unrolled loops compiled from before optimizations: XLA chooses layouts after them."""
    texts = {s.text for s in suggestions if s.recipe in {r.name for r in LOOPS}}
    if not texts:
        return list(suggestions)
    found = {}
    changed = partial(_with_loops_changed, texts=texts)
    for r, trial in _tried_in_written(original, written, changed, budget):
        if budget.observed.replay.target == "cpu":
            trial = _of_large_gain(trial, may_lose=False)
        if trial is not UNKNOWN:
            found[r.recipe.name, r.recipe.text] = trial
    return [replace(s, trial=found.get((s.recipe, s.text), s.trial)) for s in suggestions]


def _tried_in_written(
    original: Account,
    written: Module,
    changed: "Callable[[Module, str], Iterable[Rewritten]]",
    budget: Budget,
) -> "Iterator[tuple[Rewritten, Trial]]":
    """The changes of a module before optimizations, each with its trial, where figures can be compared."""
    config = budget.observed.replay.config
    if not before_fusion(config.target, config.device) or config.changes:
        return
    start = budget.prepared(written)
    can_compare = comparable(budget.observed, written) is not None
    for found in changed(start, config.build.backend):
        if not can_compare or not budget.allows():
            yield found, UNKNOWN
            continue
        budget.rewritten[found.recipe.name] = found.module
        base, after = (budget.compiled(m, config.build.flags) for m in (start, found.module))
        if base is None or after is None:
            continue
        devices = [o.replay.before.devices for o, _ in (base, after)]
        if devices[0] != devices[1]:  # its partition is not repeated
            yield found, UNKNOWN
        else:
            before = original if replaces_all(after[1], base[1], original) else base[1]
            found = replace(found, touched=share_of_change(before, after[1]))
            yield found, _stated(before, after[1], "replayed from before optimizations", found.recipe.unrolls)


class Rewritten(Record):
    """A recipe's change in a module before optimizations."""

    recipe: Recipe
    start: Module
    module: Module
    places: tuple[Place, ...]
    touched: float = 0.0

    def suggestion(self, trial: Trial) -> Suggestion:
        text, places, name = self.recipe.text, self.places, self.recipe.name
        alone = _gradient(places, self.start) == _gradient(places, self.module) != set()
        return Suggestion(
            "code",
            text,
            "",
            lines_of(places),
            len(places),
            trial,
            name,
            touched=self.touched,
            is_forward_alone=alone,
        )


def rewritten(start: Module, backend: str, *, loops: bool = False) -> Iterator[Rewritten]:
    """`start`, as `prepared` leaves it, with each recipe that applies, one at a time; `loops`: unrolled."""
    opcodes = {x.opcode for x in start.instructions()}
    for recipe in RECIPES:
        rewriting = WRITTEN.get(recipe.name)
        if rewriting is None or rewriting.backend not in ("", backend):
            continue
        if opcodes.isdisjoint(rewriting.opcodes.split()):
            continue
        module = copy_module(start)
        changed = tuple(_rewrite(module, recipe.name))
        if changed:
            yield Rewritten(recipe, start, module, changed)
    if loops:
        yield from _with_loops_changed(start, backend)


def _with_loops_changed(start: Module, backend: str, texts: Container[str] = ()) -> Iterator[Rewritten]:
    """`start` with each change of its loops; with `texts`, only those with such a text."""
    situation = Unoptimized(start, backend)
    for recipe in (r for r in LOOPS if not texts or r.text in texts):
        module = copy_module(start)
        changed: tuple[Place, ...] = ()
        for finding in recipe.find(situation) if recipe.rewrite is not None else ():
            x = module.find(finding.at)
            if x is not None and recipe.rewrite is not None:
                place = replace(place_of(x, module), final="")
                changed += (place,) * recipe.rewrite(x)
        if changed:
            HloDCE().run(module, Recorder())
            yield Rewritten(recipe, start, module, changed)


def _rewrite(module: Module, recipe: str) -> list[Place]:
    """The places where the change of a recipe was made in a module before optimizations."""
    rewriting = WRITTEN[recipe]
    opcodes = rewriting.opcodes.split()
    found = (x for c in module.computations for x in c.post_order() if x.opcode in opcodes)
    places = [x for x in found if not x.is_while or is_own(x)]
    lines = {x: replace(place_of(x, module), final="") for x in places}
    changed = [lines[x] for x in places if rewriting.change(x)]
    HloDCE().run(module, Recorder())
    return changed


_CREATED = values("concatenate pad sort gather scatter select convolution reverse")
"""Operations that passes create, and that a recipe's text is about."""


def _of_size(x: Instruction) -> tuple[object, ...]:
    return x.opcode, *sorted(n for n in x.sizes if n > 1)


def _gradient(places: Sequence[Place], module: Module) -> set[str]:
    """The operations in which the lines of these places are differentiated, not the bodies of loops there."""
    lines = {p.line for p in places} - {""}
    bodies = tuple(f"{p.op_name}/" for p in places)
    found = (x for x in module.instructions() if is_gradient(x.op_name) and place_of(x, module).line in lines)
    return {x.name for x in found if not (x.op_name or "").startswith(bodies)}


_AVOIDED_BY = {"GM004": "update-as-one-vector"}
"""Rules whose cost a recipe avoids where the program has one array from the beginning: trials join many."""


def of_rules(ranking: Ranking, others: Iterable[Suggestion]) -> Iterator[Suggestion]:
    """The rules whose absence would save time, with no known change of the program; none without times."""
    if ranking.after.us is None:
        return
    tried = list(others)
    suggested = {s.rule for s in tried}
    for r in ranking.relaxed:
        saved = r.trial.us_saved or 0.0
        if saved >= _GAIN_OF_RULE * ranking.after.us and r.rule.code not in suggested:
            recipe = _AVOIDED_BY.get(r.rule.code, "") * (3 * saved >= ranking.after.us)
            recipe *= any(recipe == s.recipe for s in tried)
            how = "arrays kept in one vector may avoid" if recipe else "no change tried here avoids"
            text = f"XLA limitation, which {how}: {r.rule.title}"
            sources = tuple(dict.fromkeys(filter(None, (b.producer.source for b in r.blocks))))
            yield Suggestion("report", text, r.rule.code, sources, len(r.blocks), r.trial, recipe)


def of_flags(facts: Facts, module: Module | None, budget: Budget) -> Iterator[Suggestion]:
    """The flags about passes that changed something, each compiled and replayed with it. Without the module
    before optimizations, those that leave out a pass from fusion on. None where the replay is not XLA's."""
    observed = budget.observed
    config = observed.replay.config
    if not before_fusion(config.target, config.device) or config.changes:
        return
    own = config.build.flags
    found = compiled(observed, module, own) if budget.allows() else None
    if found is None or found[1].totals.kernels != facts.account_replayed.totals.kernels:
        return
    base = found[1]
    lowered = []
    effective = (f"--{DISABLED}=", f"--{YNN_KINDS}=")
    if module is not None:
        lowering = Compilation.of(module, Stage.BEFORE, config, observed.replay.input.lowering)
        lowered = lowering.span(Stage.INPUT).changing_passes
    for flag, (text, rule) in dict(_flags(observed, lowered, facts)).items():
        if module is None and not flag.startswith(effective):
            continue
        found = compiled(observed, module, merged(own, (flag,))) if budget.allows() else None
        if found is None:
            continue
        accounts = facts.account_replayed, (after := found[1])
        trial = trial_of(base.totals, after.totals, "replayed with the flag", accounts)
        unknown = after.totals.without_time - base.totals.without_time
        touched = share_of_change(*accounts)
        if base.bounded_work != after.bounded_work or unknown:
            least = _ROUNDING * (base.totals.us or 0.0) if base.times is not None and not unknown else 0.0
            if unknown > 0 or (trial.us_saved is not None and trial.us_saved < least):
                continue
            if touched < _GAIN_OF_FLAG and not unknown:
                continue
            trial = replace(trial, us_saved=None, scaled_us_saved=None)
        saved = trial.us_saved
        may_lose = (saved or 0.0) > 0 and least_saving(*accounts, apart=True) <= 0
        gains = saved is None or (saved >= _GAIN_OF_FLAG * (base.totals.us or 0.0) and not may_lose)
        if not gains and not trial.saves_memory(base.totals):
            continue
        calls = [sum(r.kind == "library" for r in a.rows) for a in (base, after)]
        # XLA's loops in place of a library were said to save 72 to 87% and took 1.4 to 2.3 times as long.
        if may_lose or (calls[0] > calls[1] and base.times is not None):
            trial = replace(trial, us_saved=None, scaled_us_saved=None)
        trial = replace(trial, has_fewer_library_calls=calls[0] > calls[1])
        yield Suggestion("flag", text, rule, (), 0, trial, flag=flag, touched=touched)


_PIPELINED = {"all-gather": "all_gather", "reduce-scatter": "all_reduce"}
"""Collectives that XLA can start an iteration earlier or end one later, and the end of the flag for it."""


def of_pipelining(account: Account, own: Strings) -> Iterator[Suggestion]:
    """The flags that overlap collectives of loops with other iterations, where kernels hide too little."""
    waits = dict[str, float]()
    for c in account.collectives:
        kind = _PIPELINED.get(c.exchange.kind)
        if kind is not None and c.runs > 1 and c.exposed is not None:
            flag = f"--xla_gpu_enable_pipelined_{kind}=true"
            waits[flag] = waits.get(flag, 0.0) + c.exposed[0]
    total = account.totals.us or inf
    flags = [f for f, us in waits.items() if us >= _GAIN_OF_FLAG * total and f not in own]
    if flags:
        text = "Overlap the collectives of a loop with its other iterations"
        share = sum(waits[f] for f in flags) / total
        yield Suggestion("flag", text, "", (), 0, UNKNOWN, flag=" ".join(flags), touched=share)


def _flags(
    observed: Observed, changing: Sequence[str], facts: Facts
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Flags, each with what it does and the rule that it avoids; `changing` are passes before fusion."""
    replay = observed.replay
    own = replay.config.build.flags
    for code in dict.fromkeys(e.rule for e in replay.input.events if e.rule):
        rule = facts.rule(code)
        if rule.flag and rule.flag not in own:
            yield (
                with_own(rule.flag, own),
                (f"Disable a pass: {rule.title[:1].lower()}{rule.title[1:]}", code),
            )
    changing = [*changing, *(p.name for p in replay.passes if p.changed)]
    changing += replay.span(Stage.SCHEDULED).changing_passes
    for name in dict.fromkeys(changing):
        if name in OPTIONAL:
            yield with_own(f"--{DISABLED}={name}", own), (f"Leave out the pass {name}", "")
    if any(i.fusion_kind == "kCustom" for i in replay.before.instructions()) and replay.target == "cpu":
        yield f"--{YNN_KINDS}=-reduce", ("Leave reductions to XLA instead of YNNPACK", "CPU001")
    for option in TARGETS[replay.target].options:
        flag = OPTION_FLAGS.get(option)
        if flag is not None and flag not in own:
            yield flag, (f"Enable multi-output fusion ({option})", "")


def with_own(flag: str, own: Strings) -> str:
    """A flag that switches passes off, with those that are off already: XLA takes it once."""
    if not flag.startswith(f"--{DISABLED}="):
        return flag
    return joined((*(f for f in own if f.startswith(f"--{DISABLED}=")), flag))[0]


def compiled(observed: Observed, module: Module | None, flags: Strings) -> tuple[Observed, Account] | None:
    """The replay of a module before optimizations (None: the fusion input) with these flags, or None."""
    config = observed.replay.config
    input = observed.replay.input
    try:
        if module is not None:
            found = compiled_with(module, config, flags, observed.cache, input.lowering)
        else:
            changed = replay_config(config.target, config.device, xla=config.release.name, xla_flags=flags)
            found = observed_replay(input, changed, cache=observed.cache, totals_only=True)
    except HlofuseError:
        return None
    return found, final_account(found)


def combined(
    suggestions: Iterable[Suggestion], before: Account, written: Module | None, budget: Budget
) -> tuple[tuple[int, ...], Trial] | None:
    """The changes that still help after others, and the gain of all; None for fewer than two, or if one alone
    gains as much. First those of `written`, before optimizations, and flags, then those at fusion."""
    able = [(n, s) for n, s in enumerate(suggestions, 1) if not s.trial.is_to_be_measured]
    early = [(n, s) for n, s in able if s.flag or s.recipe in WRITTEN]
    later = [(n, s, s.change) for n, s in able if s.change is not None]
    if len(early) + len(later) < 2 or not budget.allows():
        return None
    module = budget.prepared(written) if early and written is not None else None
    observed = budget.observed
    own = flags = observed.replay.config.build.flags
    start = budget.compiled(module, own) if early else (observed, before)
    if start is None:
        return None
    current, account = start
    first = account
    helpful = list[int]()

    def helps(after: Account) -> bool:
        return trial_of(account.totals, after.totals, "").helps(account.totals)

    for number, s in early[:_TOGETHER]:
        changed = module
        more = merged(flags, (s.flag,)) if s.flag else flags
        if module is not None and not s.flag:
            changed = budget.rewritten.get(s.recipe) if not helpful else None
            if changed is None:
                changed = copy_module(module)
                _rewrite(changed, s.recipe)
        found = budget.compiled(changed, more) if budget.allows() else None
        if found is not None and helps(found[1]):
            (current, account), module, flags = found, changed, more
            helpful.append(number)
    for number, _, (recipe, findings) in later[:_TOGETHER]:
        if not budget.allows():
            break
        if helpful and early:
            facts = Facts(current.replay, current.costs)
            refused = [r for b in blocking_rules_of(facts) for r in b.refusals]
            findings = tuple(recipe.find(Situation(facts, refused)))
        attempt = tried(current.replay.input, current.replay.config, recipe, findings, observed.cache)
        if attempt is not None and helps(after := final_account(attempt[0])):
            current = attempt[0]
            account = after
            helpful.append(number)
    first = before if replaces_all(account, first, before) else first
    trial = trial_of(first.totals, account.totals, "replayed", (first, account))
    best = max((s.trial.us_saved or 0.0 for _, s in able), default=0.0)
    if len(helpful) < 2 or (trial.us_saved is not None and trial.us_saved <= best):
        return None
    return tuple(sorted(helpful)), trial


def of_barriers(observed: Observed, facts: Facts, for_memory: bool = False) -> Iterator[Suggestion]:
    """A barrier around each array that several kernels compute for others, if it is not differentiated."""
    kernels, replay = kernels_of(facts), observed.replay
    module = copy_module(replay.before)
    places, updated = [], []
    for name, own in kernels.items():
        x = module.find(name) if len(own) > 1 and name in facts.before else None
        if x is None or x.opcode in SILENT or "jvp(" in (x.op_name or ""):
            continue
        if any(o.rank for o in x.operands) and any(kernels.get(u.name) != own for u in x.users):
            places.append(facts.place(name))
            updated.append(any(u.opcode in _UPDATES and u.operand is x.operand for u in x.operand.users))
            x.replace_all_uses_with(make.add(x, "opt-barrier", x.shape, [x]))
    if not places:
        return
    changed = _replayed(with_edited(replay.input, module), replay.config, observed.cache)
    if changed is None:
        return
    account, after = facts.account_replayed, final_account(changed)
    trial = trial_of(account.totals, after.totals, "replayed", (account, after))
    least = _GAIN_OF_FLAG if account.times is None else _GAIN_OF_BARRIER
    saves = (trial.us_saved or 0.0) >= least * (account.totals.us or 0.0)
    if for_memory or (saves and least_saving(account, after) > 0):
        text, recipe = "Put jax.lax.optimization_barrier around what XLA computes several times", ""
        if all(updated):
            text = "Read before the update, behind a barrier with what is updated"
            recipe = "barrier-before-the-update"
        yield Suggestion("code", text, "", lines_of(places), len(places), trial, recipe)


def tried(
    input: CompilationInput,
    config: ReplayConfig,
    recipe: Recipe,
    findings: Sequence[Finding],
    cache: SharedTables,
) -> tuple[Observed, tuple[Finding, ...]] | None:
    """The replay of the module with the change in all places, and those where it could be made; else None."""
    if recipe.rewrite is None:
        return None
    module = copy_module(input.module)
    places = {f: [module.find(name) for name in (f.at, *f.parts)] for f in findings}
    changed = tuple(f for f, found in places.items() if None not in found and recipe.rewrite(*found))
    if not changed:
        return None
    recorder = Recorder()
    HloConstantFolding().run(module, recorder)
    HloDCE().run(module, recorder)
    if config.device is not None and has_triton(config.device):
        steps = (ALGSIMP_LAYOUTS, "cse(only_fusion_computations=false)", "triton-softmax-rewriter")
        pass_lists(config.device).pipeline("after-rewrite", *steps).run(module, recorder)
    found = _replayed(with_edited(input, module), config, cache)
    return (found, changed) if found is not None else None


def _replayed(input: CompilationInput, config: ReplayConfig, cache: SharedTables) -> Observed | None:
    """The replay of a module that was changed; None where it takes too many decisions."""
    with suppress(HlofuseError):
        return observed_replay(input, config, cache=cache, totals_only=True)
    return None


def with_edited(input: CompilationInput, module: Module) -> CompilationInput:
    """Another module in place of that of an input: what XLA recorded is about the module as it was."""
    return replace(input, module=module, ids=None, record=None, events=())


def tried_around(
    recipe: Recipe, findings: Sequence[Finding], observed: Observed, cutter: Cutter
) -> tuple[Trial, list[Finding]] | None:
    """The trial of a change on the kernels around its places, and the places where it helps. One of several
    places in equal kernels is replayed. None where nothing could be replayed."""
    config = observed.replay.config
    cache = observed.cache
    account = cutter.facts.account_replayed
    changed = account.totals
    helped = list[Finding]()
    scaled: float | None = 0.0
    is_tried = grows = False
    found = grouped((cutter.kind(f), f) for f in findings) if recipe.rewrite is not None else {}
    for places in sorted(found.values(), key=len, reverse=True)[:_KINDS]:
        cut = cutter.around(places[0])
        if cut is None:
            continue
        alone = with_edited(observed.replay.input, cut)
        base = _replayed(alone, config, cache)
        names = cutter.matched(base.replay) if base is not None else None
        attempt = tried(alone, config, recipe, places[:1], cache) if names is not None else None
        if base is None or attempt is None:
            continue
        is_tried = True
        share(cutter.facts.account_after.module, base.replay, names)
        accounts = final_account(base, with_peak=False), final_account(attempt[0], with_peak=False)
        before, after = (a.totals for a in accounts)
        runs = cutter.runs(places[0]) * len(places)
        trial = trial_of(before, after, "", accounts)
        if trial.helps(before):
            helped += places
            cost = Cost(
                *(t + (a - b) * runs for t, b, a in zip(changed.cost, before.cost, after.cost, strict=True))
            )
            figures = Json()
            for name in ("kernels", "launches", "modelled_us", "floor_us"):
                t, b, a = (getattr(one, name) for one in (changed, before, after))
                times = len(places) if name == "kernels" else runs
                figures[name] = None if t is None or b is None or a is None else t + (a - b) * times
            changed = replace(changed, cost=cost, peak_temporary_bytes=None, memory_bytes=None, **figures)
            part = trial.scaled_us_saved
            scaled = None if scaled is None or part is None else scaled + part * runs
            grows |= trial.has_more_code
    if not is_tried:
        return None
    trial = trial_of(account.totals, changed, "replayed on the kernels around each place")
    scaled = scaled if helped else None
    return replace(trial, scaled_us_saved=scaled, has_more_code=grows), helped or list(findings)
