// The lists at the left: kernels by cost, source, refused pairs, decisions with their filters, differences.

const FILTERS = ["kind", "pass", "rule", "computation", "source"];
const TABS = [["differences", "Differences"], ["kernels", "Kernels"], ["source", "Source"], ["refused", "Refused"], ["decisions", "Decisions"]];

// Kernels in the rows of a report: equal ones have the same line, kind, shapes and figures.
function equalKernels(run) {
  if (run.groups) return run.groups;
  const found = new Map();
  for (const k of run.kernels) {
    const time = k.measured ? Math.round(Math.log2(k.measured)) : k.us;
    const key = [k.name.replace(/[.\d]+$/, ""), k.source, k.shape, ...k.reads.map((v) => v.shape), k.read, k.written, k.flops, time, k.iterations].join();
    found.set(key, [...(found.get(key) ?? []), k]);
  }
  const order = (own) => [measuredUs, totalUs, totalBytes].map((of) => sumOf(own, of));
  const rows = [...found.values()].map((own) => [own, order(own)]);
  rows.sort(([, a], [, b]) => b[0] - a[0] || b[1] - a[1] || b[2] - a[2]);
  run.groups = rows.map(([own]) => own);
  return run.groups;
}

const sumOf = (kernels, of) => kernels.reduce((sum, k) => sum + of(k), 0);
const barOf = (run, k) => (run.isMeasured ? measuredUs(k) : barValue(run, k));

function distinct(column) { return [...new Set(column)].filter(Boolean).sort(); }

class Panels {
  constructor(app) {
    this.app = app;
    this.listed = [];
    this.opened = new Set();  // rows of equal kernels, by their first
    this.lists = {
      decisions: new LongList("Decisions", (n) => this.decisionRow(n), (n) => app.goTo(n + 1)),
      kernels: new LongList("Kernels, slowest first", (row) => this.kernelRow(row), (row, n, isClick) => this.chooseKernels(row, isClick)),
      refused: new LongList("Refused pairs of kernels", (h) => this.refusedRow(h), (h) => app.showRefused(h)),
    };
    this.source = new SourcePane(app);
    this.differences = new Differences(app);
    const { runs } = app.data, isFused = runs.every((run) => run.isFused);
    this.all = TABS.filter(([key]) => (key === "differences" ? runs.length > 1 : !isFused || !["refused", "decisions"].includes(key)));
  }

  // The tab on show; `held` is the name of the refused pairs in older links.
  get tab() {
    const wanted = this.app.view.tab === "held" ? "refused" : this.app.view.tab;
    return (this.all.find(([key]) => key === wanted) ?? this.all[0])[0];
  }

  tabs() {
    const { app, all, tab } = this;
    byId("tabs").replaceChildren(...all.map(([key, words]) => el("button", {
      type: "button", role: "tab", id: `tab-${key}`, "aria-selected": String(key === tab), "aria-controls": "panel",
      tabindex: key === tab ? 0 : -1, onclick: () => app.change({ tab: key }),
      onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        app.change({ tab: all[(all.findIndex(([k]) => k === tab) + by + all.length) % all.length][0] });
        byId(`tab-${this.tab}`).focus();
      },
    }, words)));
  }

  // Another tab, another run, another filter.
  open() {
    this.tabs();
    const { tab } = this, { run } = this.app;
    this.filter();
    const panel = byId("panel");
    panel.setAttribute("aria-labelledby", `tab-${tab}`);
    document.body.classList.toggle("program", tab === "source" && this.app.data.files.some((f) => f.embedded));
    if (tab === "differences") panel.replaceChildren(...this.differences.open());
    else if (tab === "source") panel.replaceChildren(...this.source.open());
    else if (tab === "decisions") {
      panel.replaceChildren(this.filters(), this.lists.decisions.element);
      this.lists.decisions.show(this.listed, this.listed.indexOf(this.app.state.at - 1));
    } else if (tab === "kernels") {
      const groups = equalKernels(run);
      this.most = greatest(1e-9, groups.map((own) => sumOf(own, (k) => barOf(run, k))));
      this.sorted = groups.flatMap((own) => (own.length < 2 ? own : this.opened.has(own[0]) ? [own, ...own] : [own]));
      const loops = run.kernels.some((k) => k.iterations > 1);
      panel.replaceChildren(el("p", { class: "note" },
        `${countText(run.kernels.length, "kernel")}${groups.length < run.kernels.length ? ` in ${countText(groups.length, "row")}` : ""}, ${run.isMeasured ? "slowest first, measured" : run.timed ? `slowest first${run.isFused ? "" : ", launch overhead included"}` : "most bytes first"}${loops ? ", all iterations of loops" : ""}`), this.lists.kernels.element);
      this.lists.kernels.show(this.sorted, this.kernelIndex());
    } else {
      const { rule } = this.app.view;
      this.edges = run.refusedEdges.filter((h) => !rule || h.rule === rule);
      const all = rule && el("button", { type: "button", onclick: () => this.app.clearFilters() }, "all rules");
      panel.replaceChildren(el("p", { class: "note" }, this.refusedText(this.edges), " ", all), this.lists.refused.element);
      this.lists.refused.show(this.edges, this.refusedIndex());
    }
  }

  // Another step only.
  follow() {
    const { tab } = this;
    if (tab === "differences") this.differences.follow();
    else if (tab === "source") this.source.follow();
    else if (tab === "decisions") this.lists.decisions.select(this.listed.indexOf(this.app.state.at - 1));
    else if (tab === "kernels") this.lists.kernels.select(this.kernelIndex());
    else this.lists.refused.select(this.refusedIndex());
  }

  kernelIndex() {
    const { chosenKernel } = this.app, { chosen } = this.lists.kernels;
    const holds = (row) => [row].flat().includes(chosenKernel);
    if (holds(this.sorted[chosen])) return chosen;
    const at = this.sorted.indexOf(chosenKernel);
    return at < 0 ? this.sorted.findIndex(holds) : at;
  }

  // A click on a row of equal kernels lists them below it, or folds them again.
  chooseKernels(row, isClick) {
    const own = [row].flat();
    this.app.showKernel(own[0]);
    if (own.length < 2 || !isClick) return;
    if (!this.opened.delete(own[0])) this.opened.add(own[0]);
    this.open();
  }

  // The pair that the decision shown is about; of several, the one taken from the list.
  refusedIndex() {
    const shown = this.app.state.at - 1, { chosen } = this.lists.refused;
    if (shown < 0) return -1;
    return this.edges[chosen]?.decision === shown ? chosen : this.edges.findIndex((h) => h.decision === shown);
  }

  refusedText(edges) {
    const { rule } = this.app.view;
    if (!edges.length) return `${rule || "No rule"} ${rule ? "forbids no" : "forbids a"} fusion of two kernels.`;
    const most = edges[0].us > 0 ? "most time at stake first, then most bytes" : "most bytes first";
    return `${countText(edges.length, "pair")} of kernels that ${rule || "a rule"} forbids to fuse, ${rule ? most : `rule by rule, ${most}`}`;
  }

  filter() {
    const { run, view } = this.app, d = run.decisions, words = view.q.toLowerCase();
    this.listed = [];
    for (let n = 0; n < d.count; n++) {
      if (view.kind && d.kind[n] !== view.kind) continue;
      if (view.pass && run.passes[d.pass[n]] !== view.pass) continue;
      if (view.rule && d.rule[n] !== view.rule) continue;
      if (view.computation && d.computation[n] !== view.computation) continue;
      if (view.source && run.sourceOfDecision(n) !== view.source) continue;
      if (words && !`${sentence(run, n)} ${d.resultName[n]} ${d.reason[n]}`.toLowerCase().includes(words)) continue;
      this.listed.push(n);
    }
  }

  filters() {
    const { app } = this, { run, view } = app, d = run.decisions;
    const sources = () => distinct(Array.from({ length: d.count }, (_, n) => run.sourceOfDecision(n)));
    run.choices ??= {
      kind: Object.entries(KIND_TEXTS), pass: run.passes.map((p) => [p, p]),
      rule: distinct(d.rule).map((r) => [r, `${r} ${app.data.rules.get(r)?.title ?? ""}`]),
      computation: distinct(d.computation).map((c) => [c, c]), source: sources().map((s) => [s, s]),
    };
    const selects = FILTERS.map((name) => {
      const options = [...new Map(run.choices[name])].map(([value, words]) =>
        el("option", { value, selected: view[name] === value }, words));
      return el("select", {
        id: `filter-${name}`, "aria-label": `Only this ${name}`, onchange: (event) => app.change({ [name]: event.target.value }),
      }, el("option", { value: "" }, `any ${name}`), ...options);
    });
    const text = el("input", {
      id: "filter-text", type: "search", placeholder: "name or text", "aria-label": "Only with this text", value: view.q,
      onchange: (event) => app.change({ q: event.target.value }),
    });
    const some = FILTERS.some((name) => view[name]) || view.q;
    const clear = some && el("button", { type: "button", id: "clear", onclick: () => app.clearFilters() }, "all");
    return el("div", { class: "filters" }, ...selects, text,
      el("p", { class: "note" }, `${numberText(this.listed.length)} of ${countText(d.count, "decision")} `, clear));
  }

  decisionRow(n) {
    const { run, data } = this.app, d = run.decisions;
    const worth = d.kind[n] === "fuse" ? d.usSaved[n] : null;
    return [
      el("span", { class: `dot ${d.kind[n]}`, "aria-hidden": "true" }),
      el("span", { class: "first", title: sentence(run, n) }, sentence(run, n, true)),
      el("span", { class: "worth" }, worth === null ? d.rule[n] : timeText(worth)),
      el("span", { class: "second" }, `${n + 1} · ${run.passes[d.pass[n]]} · ${reasonLine(data, run, n) || KIND_TEXTS[d.kind[n]]}`),
    ];
  }

  // A kernel, or the sums of equal ones.
  kernelRow(row) {
    const own = [row].flat(), k = own[0], name = own.length > 1 ? `${own.length} × ${k.name}` : k.name;  // the end of a long name is cut
    const timed = k.us !== null, us = sumOf(own, totalUs), bytes = sumOf(own, totalBytes);
    const bar = el("span", { class: "bar-line", "aria-hidden": "true" });
    const { run } = this.app, estimate = timed ? kernelTime(k, us) : "";
    bar.style.width = `${Math.max(1, (100 * sumOf(own, (x) => barOf(run, x))) / this.most)}%`;
    const worth = run.isMeasured ? (k.measured === null ? "not measured" : timeText(sumOf(own, measuredUs))) : estimate || bytesText(bytes);
    const second = [k.own, run.isMeasured && estimate && `est. ${estimate}`, iterationsText(k), k.bound, (timed || run.isMeasured) && bytesText(bytes), k.kind, k.atFusion, k.layer].filter(Boolean).join(" · ");
    return [el("span", { class: "first", title: own.map((x) => x.name).join(", ") }, name), el("span", { class: "worth" }, worth), el("span", { class: "second", title: second }, second), bar];
  }

  refusedRow(h) {
    const title = this.app.data.rules.get(h.rule)?.title ?? "", { run } = this.app;
    return [
      el("span", { class: "dot ineligible", "aria-hidden": "true" }),
      el("span", { class: "first", title: `${run.shown(h.producer)} → ${run.shown(h.consumer)}` },
        `${run.finalOf(h.producer)} → ${run.finalOf(h.consumer)}`),
      el("span", { class: "worth" }, h.us === null ? bytesText(h.bytes) : h.us < 0 ? `${timeText(-h.us)} slower` : timeText(h.us)),
      el("span", { class: "second" }, `${h.rule} · ${title}`),
    ];
  }
}
