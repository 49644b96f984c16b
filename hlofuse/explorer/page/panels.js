// The lists at the left: decisions with their filters, kernels by cost, what holds back fusion.

const FILTERS = ["kind", "pass", "rule", "computation", "source"];
const TABS = [["held", "Held back"], ["decisions", "Decisions"], ["kernels", "Kernels"]];

function distinct(column) { return [...new Set(column)].filter(Boolean).sort(); }

class Panels {
  constructor(app) {
    this.app = app;
    this.listed = [];
    this.lists = {
      decisions: new LongList("Decisions", (n) => this.decisionRow(n), (n) => app.goTo(n + 1)),
      kernels: new LongList("Kernels, dearest first", (k) => this.kernelRow(k), (k) => app.showBox(k.box)),
      held: new LongList("What holds back fusion", (h) => this.refusedRow(h), (h) => app.showRefused(h)),
    };
  }

  tabs() {
    const { app } = this;
    byId("tabs").replaceChildren(...TABS.map(([key, words]) => el("button", {
      type: "button", role: "tab", id: `tab-${key}`, "aria-selected": String(key === app.view.tab), "aria-controls": "panel",
      tabindex: key === app.view.tab ? 0 : -1, onclick: () => app.change({ tab: key }),
      onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        const at = TABS.findIndex(([k]) => k === app.view.tab);
        app.change({ tab: TABS[(at + by + TABS.length) % TABS.length][0] });
        byId(`tab-${app.view.tab}`).focus();
      },
    }, words)));
  }

  // Everything anew: another tab, another run, another filter.
  open() {
    this.tabs();
    const { tab } = this.app.view, { run } = this.app;
    this.filter();
    const panel = byId("panel");
    panel.setAttribute("aria-labelledby", `tab-${tab}`);
    if (tab === "decisions") {
      panel.replaceChildren(this.filters(), this.lists.decisions.element);
      this.lists.decisions.show(this.listed, this.listed.indexOf(this.app.state.at - 1));
    } else if (tab === "kernels") {
      // As often as their loops run them.
      const cost = (k) => (k.us ?? -1) * k.turns, moved = (k) => k.bytes * k.turns;
      this.sorted = [...run.kernels].sort((a, b) => cost(b) - cost(a) || moved(b) - moved(a));
      this.most = greatest(1e-9, run.kernels.map(cost));
      this.mostBytes = greatest(1, run.kernels.map(moved));
      panel.replaceChildren(el("p", { class: "note" },
        `${countText(run.kernels.length, "kernel")} in the end, dearest first${run.kernels.some((k) => k.us !== null) ? ", launches included" : ""}${run.kernels.some((k) => k.turns > 1) ? ", as often as their loops run them" : ""}`), this.lists.kernels.element);
      this.lists.kernels.show(this.sorted, this.sorted.findIndex((k) => k.box === this.app.chosen));
    } else {
      const { rule } = this.app.view, held = this.held = run.held.filter((h) => !rule || h.rule === rule);
      const all = rule && el("button", { type: "button", onclick: () => this.app.clearFilters() }, "all rules");
      panel.replaceChildren(el("p", { class: "note" }, this.refusedText(held), " ", all), this.lists.held.element);
      this.lists.held.show(held, this.refusedIndex());
    }
  }

  // Another step only.
  follow() {
    if (this.app.view.tab === "decisions") this.lists.decisions.select(this.listed.indexOf(this.app.state.at - 1));
    else if (this.app.view.tab === "kernels") this.lists.kernels.select(this.sorted.findIndex((k) => k.box === this.app.chosen));
    else this.lists.held.select(this.refusedIndex());
  }

  // The pair that the decision shown is about; of several, the one taken from the list.
  refusedIndex() {
    const shown = this.app.state.at - 1, { chosen } = this.lists.held;
    if (shown < 0) return -1;
    return this.held[chosen]?.decision === shown ? chosen : this.held.findIndex((h) => h.decision === shown);
  }

  refusedText(held) {
    const { rule } = this.app.view;
    if (!held.length) return `${rule ? `${rule} keeps no two kernels` : "No rule keeps two kernels"} apart.`;
    const most = held[0].us > 0 ? "most time at stake first, then most traffic" : "most traffic at stake first";
    return `${countText(held.length, "pair")} of kernels that ${rule || "a rule"} keeps apart, ${rule ? most : `rule by rule, ${most}`}`;
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
      kind: Object.entries(KIND_WORDS), pass: run.passes.map((p) => [p, p]),
      rule: distinct(d.rule).map((r) => [r, `${r} ${app.data.rules.get(r)?.title ?? ""}`]),
      computation: distinct(d.computation).map((c) => [c, c]), source: sources().map((s) => [s, s]),
    };
    const made = FILTERS.map((name) => {
      const options = [...new Map(run.choices[name])].map(([value, words]) =>
        el("option", { value, selected: view[name] === value }, words));
      return el("select", {
        id: `filter-${name}`, "aria-label": `Only this ${name}`, onchange: (event) => app.change({ [name]: event.target.value }),
      }, el("option", { value: "" }, `any ${name}`), ...options);
    });
    const text = el("input", {
      id: "filter-text", type: "search", placeholder: "names or words", "aria-label": "Only with these words", value: view.q,
      onchange: (event) => app.change({ q: event.target.value }),
    });
    const some = FILTERS.some((name) => view[name]) || view.q;
    const clear = some && el("button", { type: "button", id: "clear", onclick: () => app.clearFilters() }, "all");
    return el("div", { class: "filters" }, ...made, text,
      el("p", { class: "note" }, `${numberText(this.listed.length)} of ${countText(d.count, "decision")} `, clear));
  }

  decisionRow(n) {
    const { run, data } = this.app, d = run.decisions;
    const worth = d.kind[n] === "fuse" ? d.usSaved[n] : null;
    return [
      el("span", { class: `dot ${d.kind[n]}`, "aria-hidden": "true" }),
      el("span", { class: "first", title: sentence(run, n) }, sentence(run, n, true)),
      el("span", { class: "worth" }, worth === null ? d.rule[n] : timeText(worth)),
      el("span", { class: "second" }, `${n + 1} · ${run.passes[d.pass[n]]} · ${reasonLine(data, run, n) || KIND_WORDS[d.kind[n]]}`),
    ];
  }

  kernelRow(k) {
    const us = k.us === null ? null : k.us * k.turns, bytes = k.bytes * k.turns;
    const part = us !== null ? us / this.most : bytes / this.mostBytes;
    const bar = el("span", { class: "bar-line", "aria-hidden": "true" });
    bar.style.width = `${Math.max(1, part * 100)}%`;
    return [
      el("span", { class: "first" }, k.name), el("span", { class: "worth" }, us !== null ? kernelTime(k, us) : bytesText(bytes)),
      el("span", { class: "second" }, [k.atFusion, timesText(k), k.kind, bytesText(bytes), k.layer, k.source].filter(Boolean).join(" · ")), bar,
    ];
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
