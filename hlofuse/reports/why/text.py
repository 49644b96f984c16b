"""`why` for the terminal."""

from collections.abc import Sequence
from functools import partial

from rich.text import Text

from hlofuse.account import PairDetail
from hlofuse.format import bytes_text, listing, more, plural, printable, ranges, shorten, us_text
from hlofuse.format.terminal import (
    Page,
    Rows,
    final_name_text,
    indented,
    print_command,
    print_lines,
    print_more,
)
from hlofuse.ir import Ints, grouped
from hlofuse.reports.common import costs
from hlofuse.reports.common.model import Place
from hlofuse.reports.common.phrases import advice_line, created_by_lines, figures_text, measured_text, origin
from . import Decision, PairAnswer, Story
from .story import flip_setting

ANSWERS = 3  # Stories shown where a name means several things, and decisions of each
_ROOM = 120
_LEFT_OUT = 8
_PAIRS = 1  # further pairs that are named, of those with the same answer


def story_headline(s: Story) -> str:
    """The result in one sentence."""
    name = printable(s.described.shown)
    if s.fate == "added":
        copy = f"; it copies {printable(s.copies)}" if s.copies else ""
        added = f"added by a pass after fusion{copy}."
        return f"{name}: {_time_text(s)}, {added}" if s.us is not None else f"{name} was {added}"
    if s.fate == "fused":
        if len(s.kernels) == 1:
            origin_text = " is an intermediate fusion and" if not s.described.opcode else ""
            return f"{name}{origin_text} runs in {printable(s.kernels[0].shown)}."
        return f"{name} was duplicated into {len(s.kernels)} kernels: {names(s.kernels)}."
    if s.fate == "kernel" and s.holder is not None:
        return f"{name} runs inside {printable(s.holder.shown)}, which XLA compiles into one kernel."
    if s.fate == "kernel":
        also = f"; also computed in {names(s.kernels)}" if s.kernels else ""
        return f"{name}: {_time_text(s)}{also}."
    if s.holder is not None:
        return f"{name} is inside {printable(s.holder.shown)}, which the passes treat as one operation."
    if s.fate == "no kernel":
        return f"{name} is not a kernel: {_one(s.described.opcode or 'value')} launches nothing."
    if s.before_fusion:
        return before_fusion_lines(s)[-1] + "."
    return f"{name} existed during fusion and was removed."


def _time_text(s: Story) -> str:
    """`21.0 µs × 8, memory-bound`, measured where there is a profile."""
    unknown = "time not known" if s.is_floor else "a kernel of its own"
    time = us_text(s.us, s.is_floor) if s.us is not None else unknown
    time += " for one iteration of a loop of unknown length" if s.per_iteration else ""
    time += f" × {s.runs:,}" if s.runs > 1 else ""
    if s.described.measured is not None:
        time = f"{measured_text(s.described.measured)} measured"
    return ", ".join(filter(None, (time, s.limited_by)))


def answers_headline(
    queries: Sequence[str],
    answers: Sequence[Story | PairAnswer],
    total: int,
) -> str:
    """`model.py:35: 2 of 28 kernels`, above the stories of each; of two names the pairs."""
    what = " and ".join(map(printable, queries))
    if len(queries) > 1:
        return f"{what}: {plural(len(answers), 'pair')}"
    stories = [a for a in answers if isinstance(a, Story) and a.holder is None]
    kernels = sum(s.fate in ("kernel", "added") for s in stories)
    others = len(answers) - kernels
    parts = [f"operations in {kernels} of {plural(total, 'kernel')}"] if kernels else []
    parts += [plural(others, "other instruction" if kernels else "instruction")] if others else []
    return f"{what}: {', '.join(parts)}"


def _names_of(answers: Sequence[Story | PairAnswer]) -> list[str]:
    places = ((a.described,) if isinstance(a, Story) else (a.producer, a.consumer) for a in answers)
    found = (" → ".join(printable(p.label) for p in own) for own in places)
    return list(dict.fromkeys(found))


def before_fusion_lines(answer: Story | PairAnswer) -> list[str]:
    """`same was replaced by a (algsimp)`, for names of the module before optimizations."""
    lines = []
    for change in answer.before_fusion:
        name, by, pass_name = (printable(x or "") for x in (change.name, change.by, change.pass_name))
        if change.what == "removed":
            lines.append(f"{name} was removed by {pass_name}: unused")
        elif change.what == "copied":
            lines.append(f"{name} was moved and is now {by} ({pass_name})")
        elif change.what == "renamed":
            lines.append(f"{name} is named {by} at the fusion input")
        elif pass_name == "cse":
            lines.append(f"{name} was merged with its duplicate {by} (cse)")
        else:
            lines.append(f"{name} was replaced by {by} ({pass_name})")
    return lines


def _one(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {printable(noun)}"


def pair_headline(p: PairAnswer) -> str:
    """The outcome, in one sentence."""
    a = printable(p.producer.shown)
    b = printable(p.consumer.shown)
    if p.outcome == "fused":
        return f"{a} was fused into {b}: both are in {names(p.shared)}."
    if p.outcome == "refused":
        return f"{a} was not fused into {b}."
    if p.outcome == "does not pay":
        return f"{a} was not fused into {b}: it would cost time."
    if p.outcome == "not considered":
        return f"No pass considered fusing {a} into {b}."
    if a == b:
        return f"{a} was given twice: give two different instructions, or one."
    return f"{a} is not an operand of {b}: no pass considers fusing the two."


def not_considered(p: PairAnswer) -> str:
    """Why a pair with an edge was never asked about."""
    if len(p.inside) == 2:
        return f"No pass changes the inside of {printable(p.inside[0][1])}."
    return (
        f"The fusion passes never fuse into {_one(p.consumer.opcode or 'value')} like"
        f" {printable(p.consumer.name)}, or fused it elsewhere before visiting its operands."
    )


def kernels_line(p: PairAnswer) -> str:
    """The final kernels of the two and the bytes between them, or empty."""
    if p.outcome in ("fused", "apart") or not p.producer_kernels or not p.consumer_kernels:
        return ""
    sides = ((p.producer, p.producer_kernels), (p.consumer, p.consumer_kernels))
    elsewhere = [
        f"{printable(place.label)} runs in {names(kernels)}"
        for place, kernels in sides
        if [k.name for k in kernels] != [place.name]
    ]
    where = " and ".join(elsewhere) or "a kernel each"
    return f"Final: {where}; {bytes_text(p.bytes_between)} are written and read back."


def names(places: tuple[Place, ...], most: int = 4) -> str:
    """Some names, and how many more there are."""
    return listing([printable(p.shown) for p in places], most)


def steps_text(steps: Ints) -> str:
    """`step 3, again at 7, 12`."""
    again = shorten(ranges(list(steps[1:])), _STEPS)
    return f"step {steps[0]}" + (f", again at {again}" if again else "")


def pair_text(producer: str | None, consumer: str | None) -> str:
    """`a → b`; the producer alone where no user was asked about."""
    return " → ".join(map(printable, filter(None, (producer, consumer))))


def verdict(d: Decision) -> str:
    """XLA's words where it has some, else the rule's title."""
    return printable(d.event.reason or d.rule.title)


_PRODUCERS = 8  # operands named where one rule refused many
_STEPS = 60  # columns
_READS = 6


def _print_kernel(s: Story, equal: int, console: Page, seen: set[object]) -> None:
    """A kernel's time, what keeps it apart, what helps, for `equal` more as well. `seen`: what was shown."""
    console.print(story_headline(s) + (f" {equal} more like it." if equal else ""), style="bold")
    where = printable(origin(s.described)) or printable(s.described.opcode)
    indented(console, f"{where} {_elements(s.described.shape, 40)}", 2, "dim")
    print_lines(console, map(printable, s.communication))
    if not s.apart and not s.communication:
        indented(console, "No fusion with a kernel next to it was refused.")
    for code, own in grouped((r.code, (place, r)) for place, r in s.apart).items():
        pairs = {frozenset((s.described.name, place.name)): place for place, _ in own}
        fresh = [place for pair, place in pairs.items() if pair not in seen]
        seen.update(pairs)
        if not fresh:
            continue
        rule = own[0][1]
        title = f"{code}, as above" if code in seen else f"{printable(rule.title or rule.message)} ({code})"
        indented(console, f"Not fused with {names(tuple(fresh), 2)}: {title}.")
        # Nothing has shown here that a flag saves time.
        if rule.advice and "XLA_FLAGS" not in rule.advice and code not in seen:
            indented(console, printable(advice_line(rule)))
        seen.add(code)
        break


def print_answers(
    answers: Sequence[Story | PairAnswer],
    queries: Sequence[str],
    console: Page,
    *,
    input_arguments: Sequence[str] = (),
    details: bool = True,
    total: int,
) -> None:
    """The answers below a heading. Without `details` kernels of the same line,
    shape, time and rule are one answer. `total` is the number of kernels of the program."""
    kinds = [[a] for a in answers]
    if not details:
        kinds = [*grouped((_same(a), a) for a in answers).values()]
    is_one = len(kinds) == 1
    seen = set[object]()
    if not is_one:
        console.print(answers_headline(queries, answers, total), style="bold cyan")
    narrow = len(queries) > 1 and console.width < _ROOM  # three pairs would be more than 25 lines
    shown = kinds[: ANSWERS - narrow] if console.limit else kinds
    most = console.limit if is_one else min(console.limit, ANSWERS)
    for answer, *others in shown:
        if not is_one:
            console.print()
        if isinstance(answer, PairAnswer) and (details or (is_one and not others)):
            _print_pair(answer, console, input_arguments, most, details=details)
        elif isinstance(answer, PairAnswer):
            _print_pairs(answer, others, console)
        elif details or answer.fate != "kernel" or answer.holder is not None:
            _print_story(answer, console, input_arguments, most, details=details)
        else:
            _print_kernel(answer, len(others), console, seen)
    if len(shown) < len(kinds):
        console.print()
        rest = [a for own in kinds[len(shown) :] for a in own]
        names, most = _names_of(rest), _PAIRS if isinstance(rest[0], PairAnswer) else _LEFT_OUT
        names[most:] = ["…"] * (len(names) > most)
        console.print(f"{more(len(rest))}: {', '.join(names)}", style="dim")


def _same(a: Story | PairAnswer) -> object:
    if isinstance(a, PairAnswer):
        return a.outcome, a.settled_by.rule.code if a.settled_by is not None else ""
    if a.fate != "kernel":
        return id(a)
    rules = tuple(rule.code for _, rule in a.apart)
    stem = a.described.label.rstrip(".0123456789")
    return stem, a.described.source, a.described.shape, a.us, a.runs, rules


def _print_places(console: Page, places: Sequence[Place]) -> None:
    table = Rows("name", "left", "name", "left", drop=(1,))
    for p in places:
        what = f"{printable(p.opcode)} {_elements(p.shape, 60)}".strip() or (
            "intermediate fusion, no longer present"
        )
        time = f"{measured_text(p.measured)} measured" if p.measured is not None else ""
        where = Text(printable(origin(p)), style="dim")
        table.add_row(final_name_text(p.final, p.name), what, where, time)
    table.print(console)


def _elements(shape: str, width: int) -> str:
    elements = shape.strip("()").split(", ")
    return shape if len(shape) <= width else shorten(listing(elements, width // 30), width)


def _print_pairs(p: PairAnswer, others: Sequence[PairAnswer | Story], console: Page) -> None:
    console.print(pair_headline(p), style="bold")
    if p.settled_by is not None and p.settled_by.event.event != "fuse":
        rule = p.settled_by.rule
        indented(console, f"{rule.title or verdict(p.settled_by)} ({rule.code}).")
        if rule.advice and "XLA_FLAGS" not in rule.advice:
            indented(console, printable(advice_line(rule)))
    if p.cost is not None and not p.forbidden:
        indented(console, costs.worth_text(p.cost))
    if where := kernels_line(p):
        indented(console, where)
    if others:
        rest = listing(_names_of(others), _PAIRS)
        indented(console, f"Likewise {plural(len(others), 'other pair')}: {rest}")


def _print_pair(
    p: PairAnswer,
    console: Page,
    input_arguments: Sequence[str],
    limit: int,
    *,
    details: bool,
) -> None:
    show = partial(indented, console)
    style = "bold green" if p.outcome == "fused" else "bold"
    console.print(pair_headline(p), style=style)
    notes = before_fusion_lines(p)
    for name, holder in p.inside:
        notes.append(f"{printable(name)} is inside {printable(holder)}")
    for note in notes:
        show(f"({note})", 2, "dim")
    if p.swapped:
        show("(given in reverse order: the second is the producer)", 2, "dim")
    settled = p.settled_by
    if settled is not None:
        line = Text(f"{settled.rule.code}", style="bold yellow")
        steps = steps_text(settled.steps[: None if details else 1])
        line.append(f", {printable(settled.event.pass_name)} {steps}", style="not bold default")
        if settled.event.reason:
            line.append(f": “{printable(settled.event.reason)}”", style="not bold default")
        show(line)
        if settled.rule.title:
            show(printable(settled.rule.title) + ".")
        if settled.event.figures:
            show(figures_text(settled.event.figures))
        if p.refused_user is not None:
            rule = "this pass fuses a producer into all of its users or none."
            show(f"(Refused for another user, {printable(p.refused_user)}: {rule})")
        if settled.rule.why:
            show(printable(settled.rule.why), 2, "dim")
    elif p.outcome == "not considered":
        show(not_considered(p))
    elif p.path:
        shown = [*p.path[:5], "…", p.path[-1]] if len(p.path) > 7 else p.path
        show("Path: " + " → ".join(map(printable, shown)))
        print_command(console, 2, "why", *input_arguments, p.path[0], p.path[1])
    print_lines(console, created_by_lines(p.created_by, flags=details))
    console.print()
    _print_places(console, tuple(dict.fromkeys((p.producer, p.consumer))))
    where = kernels_line(p)
    if where:
        show(where)
    if p.cost is not None and p.forbidden and not details:
        show(f"If the rule allowed it: {costs.worth_text(p.cost)}.")
    elif p.cost is not None:
        console.print()
        print_pair_cost(p.cost, p.producer, console, forbidden=p.forbidden, details=details)
    rules = [r for r in (settled and settled.rule, *(m.rule for m in p.created_by)) if r and r.code]
    if rules:
        console.print()
        if rules[0].advice and settled and settled.event.event == "ineligible" and not p.created_by:
            show(printable(advice_line(rules[0])))
        print_command(console, 2, "rule", *dict.fromkeys(r.code for r in rules))
    others = [d for d in p.decisions if d is not settled]
    if others and details:
        console.print()
        _print_decisions(console, "other decisions about this pair", others, limit)


def _print_story(
    s: Story,
    console: Page,
    input_arguments: Sequence[str],
    limit: int,
    *,
    details: bool,
) -> None:
    console.print(story_headline(s), style="bold")
    if s.fate == "added" or (s.fate == "gone" and s.before_fusion):
        print_lines(console, created_by_lines(s.created_by))
        _print_places(console, (s.described,))
        for rule in dict.fromkeys(m.rule for m in s.created_by if m.rule.advice):
            indented(console, printable(advice_line(rule)))
        return
    notes = before_fusion_lines(s)
    if s.meant:
        notes.append(f"matches: {listing([*map(printable, s.meant)], _LEFT_OUT)}")
    for note in notes:
        indented(console, f"({note})", 2, "dim")
    print_lines(console, created_by_lines(s.created_by, flags=details))
    holders = () if s.holder is None else (s.holder,)
    _print_places(console, (s.described, *holders, *s.kernels[:4]))
    if s.holder is not None:
        console.print()
        print_command(console, 2, "why", *input_arguments, s.holder.name)
        return
    if s.holds:
        console.print()
        shown = names(tuple(Place(n) for n in s.holds), 30)
        indented(console, f"contains {len(s.holds)} instructions of the input: {shown}")
    parts = (("as producer", s.as_producer), ("rewritten", s.rewrites), ("as consumer", s.as_consumer))
    for title, decisions in parts:
        if decisions and details:
            console.print()
            _print_decisions(console, title, decisions, limit)
    if not (s.as_producer or s.as_consumer or s.rewrites):
        console.print()
        indented(console, "No pass made a decision about it.")


def _print_decisions(
    console: Page,
    title: str,
    decisions: Sequence[Decision],
    limit: int,
) -> None:
    indented(console, title, 2, "bold cyan")
    table = Rows("left", "name", "left", "name")
    keys = ((d.event.pass_name, d.rule.code) if d.event.event == "ineligible" else id(d) for d in decisions)
    groups = [*grouped(zip(keys, decisions, strict=True)).values()]
    for own in groups[: limit or None]:
        steps = sorted({step for d in own for step in d.steps})
        table.add_row(
            f"{printable(own[0].event.pass_name)} {steps_text(steps)}",
            *_outcome(own),
            Text(own[0].rule.code, style="yellow"),
        )
    table.print(console, 4)
    print_more(console, len(groups) - (limit or len(groups)), indent=4)


def _outcome(decisions: Sequence[Decision]) -> tuple[Text, Text]:
    d = decisions[0].event
    if d.event == "rewrite":
        pair = pair_text(", ".join(d.removed), ", ".join(d.added))
        return Text("replaced" if d.added else "removed"), Text(pair)
    sides = ([d.event.producer for d in decisions], [d.event.consumer for d in decisions])
    pair = pair_text(*(listing([*dict.fromkeys(filter(None, side))], _PRODUCERS) for side in sides))
    if d.event == "fuse":
        created = f" = {printable(d.fusion or '')}" if d.created else ""
        copied = " (duplicated; it stays for other users)" if d.duplicated else ""
        return Text("fused", style="green"), Text(pair + created + copied)
    text = Text(pair)
    text.append(f"\n{verdict(decisions[0])}", style="dim")
    return Text("refused", style="yellow"), text


def print_pair_cost(
    d: PairDetail,
    producer: Place,
    console: Page,
    *,
    forbidden: bool,
    details: bool,
) -> None:
    """The sums and what would turn them; with `details` the three kernels they come from and what the kernel
    would read. `forbidden`: a rule keeps the two apart, whatever they cost."""
    indented(console, costs.cost_heading(forbidden=forbidden), 2, "bold cyan")
    indented(console, costs.worth_text(d), 4)
    indented(console, costs.why_saves(d.cost, producer.opcode), 4)
    table = Rows("name", "left", "right", "right")
    for label, kernel in d.cost.kernels if details else ():
        table.add_row(
            Text(label, style="dim"),
            costs.roofline(kernel),
            f"{bytes_text(kernel.bytes_read)} in",
            f"{bytes_text(kernel.bytes_written)} out",
        )
    table.print(console, 4)
    choice = costs.choice_text(d.cost.fused)
    if choice:
        indented(console, choice, 4)
    if d.fused_reads and details:
        now = {r.operand: r for r in d.consumer_reads}
        table = Rows(
            ("reads", "name"),
            ("size", "right"),
            ("consumer", "right"),
            ("fused", "right"),
            "right",
            "left",
            drop=(5, 2, 4),
        )
        for r in d.fused_reads[:_READS]:
            old = now.get(r.operand)
            table.add_row(
                f"{printable(r.operand)} {shorten(printable(r.shape), 28)}",
                bytes_text(r.size),
                bytes_text(old.read) if old is not None else "–",
                bytes_text(r.read),
                us_text(r.us),
                Text(costs.share_text(r), style="yellow"),
            )
        table.print(console, 4)
        if len(d.fused_reads) > _READS:
            rest = sum(r.us for r in d.fused_reads[_READS:])
            more = f"… {len(d.fused_reads) - _READS} more operands, {us_text(rest)}"
            indented(console, more, 4, "dim")
    print_lines(console, map(printable, d.notes[: None if details else 1]), 4)
    if d.flips:
        indented(console, costs.turning_text(d, forbidden=forbidden), 4)
        if not forbidden:
            indented(console, f"to replay that: --set {flip_setting(d.flips[0])}", 4, "dim")
