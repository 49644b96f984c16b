// The compilation pass by pass: a list with bars, and the chosen pass line by line.

class PassesView {
  constructor(app) {
    this.app = app;
    this.passTimeline = app.data.passTimeline;
    this.timed = this.passTimeline.steps.some((s) => s.ms !== null);
    this.list = new LongList("Passes of the compilation", (n) => this.row(n), (n) => this.choose(n));
    this.note = el("p", { class: "note", "aria-live": "polite" });
    this.text = el("input", {
      id: "film-text", type: "search", placeholder: "a pass, opcode or name", "aria-label": "Only passes with this text",
      oninput: () => { app.view.only = this.text.value; this.fill(); app.writeHash(); },
    });
    const orders = [["", "in order"], ["weight", "largest change first"], ...(this.timed ? [["time", "longest first"]] : [])];
    this.order = el("select", {
      id: "film-order", "aria-label": "Order of the passes", onchange: () => app.change({ order: this.order.value }),
    }, ...orders.map(([value, words]) => el("option", { value }, words)));
    this.every = el("input", { id: "film-every", type: "checkbox", onchange: () => app.change({ every: this.every.checked ? "1" : "" }) });
    this.element = el("div", { class: "film" },
      el("div", { class: "film-bar" }, this.text, this.order, el("label", {}, this.every, " every dump")), this.note, this.list.element);
  }

  // The steps on show, in the chosen order.
  fill() {
    const { view } = this.app, words = view.only.toLowerCase();
    this.text.value = view.only;
    this.order.value = view.order;
    this.every.checked = view.every === "1";
    const { steps } = this.passTimeline;
    this.shown = steps.filter((s) => (view.every === "1" || s.changed || s.problem) && (!words || this.searchText(s).includes(words)));
    if (view.order === "weight") this.shown.sort((a, b) => b.weight - a.weight);
    if (view.order === "time" && this.timed) this.shown.sort((a, b) => (b.ms ?? 0) - (a.ms ?? 0));
    const cost = (s) => (view.order === "time" ? s.ms ?? 0 : s.weight);
    this.cost = cost;
    this.most = greatest(1e-9, steps.map(cost));
    const quiet = steps.length - this.shown.length;
    const left = quiet ? `, ${countText(quiet, "dump")}${words ? "" : " without changes"} hidden` : "";
    this.note.textContent = `${countText(this.shown.length, "step")}${left}. Bar length: ${view.order === "time" ? "time" : "instructions changed"}.`;
    this.list.show(this.shown.map((s) => s.n), this.shown.findIndex((s) => s.n === this.chosen));
  }

  searchText(step) {
    step.low ??= [step.pass, step.pipeline, step.what, step.file, ...step.opcodes.map(([op]) => op),
      ...step.groups.flatMap((g) => [g.words, ...g.notes, ...g.before, ...g.after])].join(" ").toLowerCase();
    return step.low;
  }

  // The step in the panel at the right; -1 for none.
  get chosen() {
    const key = this.app.view.dump;
    return key === "" ? -1 : this.passTimeline.steps.findIndex((s) => dumpKey(s) === key);
  }

  choose(n) { this.app.change({ view: "film", dump: dumpKey(this.passTimeline.steps[n]) }); }

  // To the listed step that many further.
  move(by) {
    if (!this.shown.length) return;
    const at = this.shown.findIndex((s) => s.n === this.chosen);
    const next = at < 0 ? (by > 0 ? 0 : this.shown.length - 1) : Math.min(this.shown.length - 1, Math.max(0, at + by));
    this.choose(this.shown[next].n);
  }

  row(n) {
    const step = this.passTimeline.steps[n];
    const bar = el("span", { class: "bar-line", "aria-hidden": "true" });
    bar.style.width = `${(100 * this.cost(step)) / this.most}%`;
    const figures = [this.change(step, "instructions"), `${this.change(step, "kernels")} kernels`, step.ms !== null && msText(step.ms)];
    return [
      el("span", { class: `dot ${step.problem ? "ineligible" : /fusion/.test(step.what) ? "fuse" : ""}`, "aria-hidden": "true" }),
      el("span", { class: "first" }, `${dumpNumber(step)} ${step.pass}`),
      el("span", { class: "worth" }, step.instructions === null ? "" : figures.filter(Boolean).join(" · ")),
      el("span", { class: "second" }, [step.pipeline, step.what].filter(Boolean).join(" · ")), bar,
    ];
  }

  change(step, what) {
    const before = step.since === NONE ? null : this.passTimeline.steps[step.since][what], after = step[what];
    if (after === null) return "";
    return before === null || before === after ? numberText(after) : `${numberText(before)} → ${numberText(after)}`;
  }

  // ------------------------------------------------------------ at the right

  details() {
    return [this.chosen < 0 ? this.summary() : this.stepDetails(this.passTimeline.steps[this.chosen])];
  }

  summary() {
    const { steps } = this.passTimeline, first = steps.find((s) => s.kernels !== null), last = steps.findLast((s) => s.kernels !== null);
    const largest = steps.filter((s) => s.changed).sort((a, b) => b.weight - a.weight).slice(0, 8);
    return el("article", {},
      el("h2", {}, "What each pass did"), el("p", {}, this.passTimeline.headline),
      first && facts(["instructions", "kernels", "fusions"].map((what) => [what, `${numberText(first[what])} → ${numberText(last[what])}`])),
      el("p", {}, "The largest changes:"),
      el("ul", {}, ...largest.map((s) => el("li", {}, this.link(s), " ", el("small", {}, s.what)))),
      el("p", {}, "Each dump is compared with the one before it, by structure: other names and numbers do not count as differences."
        + " hlofuse trace-op follows one operation through all passes."),
      ...this.passTimeline.notes.map((note) => el("p", { class: "note" }, note)));
  }

  link(step, words = `${dumpNumber(step)} ${step.pass}`) {
    return el("button", { type: "button", class: "link-button", onclick: () => this.choose(step.n) }, words);
  }

  stepDetails(step) {
    const since = step.since === NONE ? undefined : this.passTimeline.steps[step.since];
    return el("article", { class: "film-step" },
      el("p", { class: "kicker" }, step.number >= 0 ? `Dump ${dumpNumber(step)}${step.pipeline && ` · ${step.pipeline}`}` : "A dump by name"),
      el("h2", {}, step.pass), el("p", { class: "reason" }, step.what),
      facts([
        ["instructions", this.change(step, "instructions")], ["kernels", this.change(step, "kernels")], ["fusions", this.change(step, "fusions")],
        ["time", step.ms === null ? "" : msText(step.ms)], ["compared with", since && this.link(since)], ["file", step.file],
      ]),
      step.n === this.passTimeline.start && el("p", {}, "The fusion passes start from this module, and the other views replay it."),
      step.opcodes.length > 0 && fold(`${countText(step.opcodes.length, "opcode")} with another count`, step.opcodes.length < 7,
        el("ul", { class: "opcodes" }, ...step.opcodes.map(([op, before, after]) =>
          el("li", {}, `${op} ${numberText(before)} → ${numberText(after)} (${after > before ? "+" : "−"}${numberText(Math.abs(after - before))})`)))),
      ...step.groups.map((group, k) => this.group(step, group, k < 4)),
      step.hidden > 0 && el("p", { class: "note" }, `… ${numberText(step.hidden)} more groups (hlofuse diff of the two files shows all)`));
  }

  group(step, group, open) {
    const summary = [el("span", { class: `badge ${GROUP_KIND[group.kind] ?? "rewrite"}` }, group.kind), group.words, group.count > 1 && ` ×${group.count}`];
    return el("details", { open }, el("summary", {}, ...summary.filter(Boolean)),
      ...group.notes.map((note) => el("p", { class: "note" }, note)),
      el("ul", { class: "lines" },
        ...group.before.map((line) => this.line(line, "−", "before")),
        ...group.after.map((line) => this.line(line, "+", "after"))),
      group.hidden > 0 && el("p", { class: "note" }, `… ${countText(group.hidden, "more line")}`),
      group.count > 1 && el("p", { class: "note" }, `the first of ${group.count} equal changes`));
  }

  line(line, sign, when) {
    return el("li", { class: when }, el("span", { "aria-hidden": "true" }, `${sign} `), el("span", { class: "unseen" }, `${when}: `), line);
  }
}

const GROUP_KIND = { new: "fuse", merged: "fuse", grown: "fuse", regrouped: "fuse", removed: "ineligible", vanished: "ineligible", split: "ineligible", shrunk: "ineligible" };

function dumpNumber(step) { return step.number >= 0 ? String(step.number).padStart(4, "0") : ""; }

// The name of a dump in the address.
function dumpKey(step) { return dumpNumber(step) || step.pass; }

function msText(ms) { return ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : ms >= 10 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(1)} ms`; }
