// Finding things by name, with suggestions while one types.

const MOST_SUGGESTIONS = 14;

class Search {
  constructor(app) {
    this.app = app;
    this.input = byId("search");
    this.list = byId("suggestions");
    this.found = [];
    this.chosen = -1;
    this.input.addEventListener("input", () => this.suggest());
    this.input.addEventListener("keydown", (event) => this.key(event));
    // Later, for a click into the list; who searches again at once keeps the list.
    this.input.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== this.input) this.close(); }, 150));
  }

  // Everything that has a name; made when first asked for.
  names() {
    const { run, data } = this.app;
    if (run.searchable) return run.searchable;
    const all = [];
    for (const [name, box] of run.boxNamed)
      all.push({ name: run.shown(name), keys: [name, run.finalOf(name)], what: run.names[box] === name ? run.ops.opcode[box] : "fusion", box, op: run.names[box] === name ? box : NONE });
    for (const kernel of run.kernels) if (kernel.box === NONE) all.push({ name: kernel.name, what: kernel.kind, kernel });
    for (const code of distinct(run.decisions.rule)) all.push({ name: code, what: data.rules.get(code)?.title ?? "rule", rule: code });
    const lines = new Map([...linesOf(run)].map(([line, found]) => [lineTitle(this.app, found), { line, found }]));
    for (const [line, found] of sourcesOf(run)) if (!lines.has(line) && found.kernels.size) lines.set(line, { line, found });
    for (const [name, { line, found }] of lines) all.push({ name, what: `source line, ${countText(found.kernels.size, "kernel")}`, line });
    for (const source of distinct(run.ops.source)) if (!lines.has(source)) all.push({ name: source, what: "source line", source });
    for (const name of new Set(run.passes)) all.push({ name, what: "pass", pass: name });
    for (const name of run.computations) all.push({ name, what: "computation", computation: name });
    for (const entry of this.passNames()) all.push(entry);
    run.searchable = all.map((entry) => ({ ...entry, low: `${entry.name} ${entry.rule ? entry.what : ""}`.toLowerCase() }));
    return run.searchable;
  }

  // Passes that changed something.
  passNames() {
    const steps = this.app.data.passTimeline?.steps ?? [];
    return steps.filter((s) => s.changed).map((s) => ({ name: s.pass, what: `dump ${dumpNumber(s)}: ${s.what}`, dump: s.n }));
  }

  suggest() {
    const words = this.input.value.trim().toLowerCase();
    if (!words) return this.close();
    const hits = this.names().filter((entry) => entry.low.includes(words));
    this.app.find(this.input.value.trim());
    // What is in the picture comes first.
    const rank = (entry) => (entry.low.trim() === words || entry.keys?.some((key) => key.toLowerCase() === words) ? 0
      : (entry.low.startsWith(words) ? 1 : 2) + (entry.box === undefined ? 2 : 0));
    hits.sort((a, b) => rank(a) - rank(b) || a.low.length - b.low.length);
    this.found = hits.slice(0, MOST_SUGGESTIONS);
    this.chosen = this.found.length ? 0 : -1;
    this.draw();
  }

  draw() {
    const none = el("li", { class: "none" }, "No match");
    this.list.replaceChildren(...(this.found.length ? this.found.map((entry, n) => el("li", {
      role: "option", id: `suggestion-${n}`, "aria-selected": String(n === this.chosen),
      onmousedown: (event) => { event.preventDefault(); this.take(entry); },
    }, el("span", {}, shortName(entry.name, 52)), el("small", {}, shortName(entry.what, 60)))) : [none]));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    if (this.chosen >= 0) this.input.setAttribute("aria-activedescendant", `suggestion-${this.chosen}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  close() {
    this.list.hidden = true;
    this.found = [];
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  // What is found in the picture: operations whose name, opcode, source line or scope says so, and fusions.
  hits(words) {
    const { run } = this.app, low = words.toLowerCase(), { ops } = run;
    run.findable ??= run.ops.opcode.map((opcode, n) => [run.names[n], run.finalOf(run.names[n]), opcode, ops.source[n], ops.opName[n], ops.path[n]].join(" ").toLowerCase());
    const found = { ops: new Set(), boxes: new Set(), list: [] };
    run.findable.forEach((text, op) => { if (text.includes(low)) found.ops.add(op); });
    for (const [name, box] of run.boxNamed)
      if (run.names[box] !== name && run.shown(name).toLowerCase().includes(low)) found.boxes.add(box);
    found.list = [...[...found.boxes].map((box) => [box, NONE]), ...[...found.ops].map((op) => [run.endsAs[op], op])]
      .sort((a, b) => (run.regionOfBox(a[0]) ?? 0) - (run.regionOfBox(b[0]) ?? 0) || a[0] - b[0] || a[1] - b[1]);
    return found;
  }

  key(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this.app.find("");
      this.close();
      this.input.blur();
    } else if (event.key === "Enter" && this.list.hidden && this.app.hits) {
      event.preventDefault();
      this.app.nextHit(event.shiftKey ? -1 : 1);
    } else if (event.key === "Enter" && this.chosen >= 0 && this.found.length) {
      this.take(this.found[this.chosen]);
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && this.found.length) {
      event.preventDefault();
      const by = event.key === "ArrowDown" ? 1 : -1;
      this.chosen = (this.chosen + by + this.found.length) % this.found.length;
      this.draw();
    }
  }

  take(entry) {
    const { app } = this;
    this.close();
    if (entry.box === undefined) { this.input.value = ""; app.find(entry.source ?? ""); }
    this.input.blur();
    if (entry.line) return app.chooseLine(entry.line);
    if (entry.kernel) return app.showKernel(entry.kernel);
    if (entry.dump !== undefined) return app.passesView.choose(entry.dump);
    if (entry.box !== undefined) return app.showBox(entry.box, entry.op);
    const { rule = "", source = "", pass = "", computation = "" } = entry;
    return app.change({ tab: "decisions", rule, source, pass, computation, kind: "", q: "" });
  }
}
