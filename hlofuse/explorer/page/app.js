// The page as a whole: what is shown, and the address that says so.

const VIEWS = [
  ["steps", "Steps", "Operations and fusions around the decision"],
  ["fusion", "Kernels", "The whole module, a box for each kernel"],
  ["scope", "Scopes", "The whole module by the framework's scopes (op_name)"],
  ["computation", "Computations", "The whole module by computation"],
  ["film", "Passes", "What every pass of the compilation did, first dump to last"],
];
const DEFAULTS = { view: "", split: "one", tab: "", line: "", run: "0", kind: "", pass: "", rule: "", computation: "", source: "", q: "", show: "", dump: "", op: "", only: "", order: "", every: "" };

const MOST_AHEAD = 120, AHEAD_AFTER = 500;

class App {
  constructor(data) {
    this.data = data;
    this.view = { ...DEFAULTS };
    this.states = data.runs.map((run) => new State(run));
    this.scenes = new Map();
    this.chosen = NONE;
    this.chosenOp = NONE;
    this.region = -1;
    this.panes = [];
    this.panels = new Panels(this);
    this.timeline = new Timeline(this);
    this.search = new Search(this);
    this.views = VIEWS.filter(([key]) => key !== "film" || data.film);
    this.passesView = data.film ? new PassesView(this) : null;
    this.keys = new Keys(this);
    this.act = {
      box: (box) => this.showBox(box), operation: (op, box) => this.choose(box, op), decision: (n) => this.goTo(n + 1), edge: (from, to) => this.showEdge(from, to),
      group: (group) => this.openGroup(group),
    };
    byId("fit").addEventListener("click", () => this.panes.forEach((p) => p.fit()));
    byId("region-back").addEventListener("click", () => this.openRegion(this.region - 1));
    byId("region-next").addEventListener("click", () => this.openRegion(this.region + 1));
    window.addEventListener("hashchange", () => { if (location.hash !== this.hash) this.readHash(); });
    this.readHash();
    setTimeout(() => this.ahead(0), AHEAD_AFTER);
  }

  // While nothing else is to be done the parts are laid out that one may come to.
  ahead(region) {
    // Not every browser tells when it is idle.
    if (!window.requestIdleCallback || region >= Math.min(this.data.runs[0].regions.length, MOST_AHEAD)) return;
    requestIdleCallback((idle) => {
      const now = idle.timeRemaining() > 8;
      if (now) this.scene(0, region);
      this.ahead(region + (now ? 1 : 0));
    });
  }

  get run() { return this.data.runs[Number(this.view.run)]; }

  // What is drawn: what was asked for, else the step if one was chosen, else all of the module.
  get drawn() { return this.view.view || (this.told || this.chosen !== NONE || this.run.regions.length < 2 ? "steps" : "fusion"); }

  get state() { return this.states[Number(this.view.run)]; }

  // ------------------------------------------------------------ the address

  readHash() {
    const said = new URLSearchParams(location.hash.slice(1));
    const view = { ...DEFAULTS };
    for (const name of Object.keys(DEFAULTS)) if (said.has(name)) view[name] = said.get(name);
    if (!this.data.runs[Number(view.run)]) view.run = "0";
    if (!this.views.some(([key]) => key === view.view)) view.view = "";
    this.view = view;
    const { length } = this.run;
    const step = said.has("step") ? Number(said.get("step")) : length;
    this.state.goTo(Number.isInteger(step) ? Math.min(length, Math.max(0, step)) : length);
    this.letGo();
    if (view.show && this.run.boxOf(view.show) !== undefined) {
      this.chosen = this.run.boxOf(view.show);
      this.chosenOp = this.run.names[this.chosen] === view.show ? this.chosen : NONE;
    }
    this.told = said.has("step") && this.state.at > 0;
    this.settleRegion();
    this.open();
  }

  writeHash() {
    const said = new URLSearchParams({ step: this.state.at });
    for (const [name, value] of Object.entries(this.view)) if (value !== DEFAULTS[name]) said.set(name, value);
    this.hash = `#${said}`;
    if (location.hash !== this.hash) history.replaceState(null, "", this.hash);
  }

  // ------------------------------------------------------------ what to show

  change(view) {
    const other = view.run !== undefined && view.run !== this.view.run;
    Object.assign(this.view, view);
    if (other) {
      this.letGo();
      this.region = -1;
      this.state.goTo(this.run.length);
      this.told = false;
      this.settleRegion();
    }
    this.open();
  }

  clearFilters() { this.change({ kind: "", pass: "", rule: "", computation: "", source: "", q: "" }); }

  // All kernels with an operation of a source line: `file:line`.
  chooseLine(line) {
    this.letGo();
    this.view.show = "";
    this.view.line = line;
    this.told = false;
    this.state.goTo(this.run.length);
    const kernels = [...linesOf(this.run).get(line)?.kernels ?? []];
    if (kernels.length && !kernels.some((k) => this.run.regionOfBox(k.box) === this.region)) this.region = this.run.regionOfBox(kernels[0].box) ?? this.region;
    this.follow();
    this.panes.forEach((pane) => pane.revealMarked());
  }

  goTo(step) {
    const at = Math.min(this.run.length, Math.max(0, step));
    this.state.goTo(at);
    this.told = true;
    this.letGo();
    this.view.show = this.view.line = "";
    this.settleRegion();
    this.follow();
  }

  letGo() {
    this.chosen = this.chosenOp = NONE;
    this.edge = null;
  }

  choose(box, op = NONE) {
    this.edge = null;
    this.chosen = box;
    this.chosenOp = op;
    this.view.line = "";
    this.view.show = op !== NONE ? this.run.names[op] : this.state.nameOf(box);
    this.follow();
  }

  showBox(box, op = NONE) {
    if (box === NONE) return;
    // What has gone into a fusion is shown there.
    let seen = box;
    if (!this.state.alive[seen] && op !== NONE) seen = [...this.state.holders[op]].at(-1) ?? seen;
    const region = this.run.regionOfBox(seen);
    if (region !== undefined) this.region = region;
    if (this.drawn !== "steps") this.view.view = "steps";
    this.choose(seen, op);
  }

  // From the box that is read to the one that reads it.
  showEdge(from, to) {
    this.letGo();
    this.edge = [from, to];
    this.follow();
  }

  showRefused(held) { held.decision !== NONE ? this.goTo(held.decision + 1) : this.showBox(this.run.boxNamed.get(held.producer) ?? NONE); }

  openRegion(number) {
    if (number < 0 || number >= this.run.regions.length) return;
    this.region = number;
    this.told = false;
    this.follow();
  }

  openGroup(group) {
    if (group.region === undefined) return;
    this.region = group.region;
    this.told = false;
    this.change({ view: "steps" });
  }

  settleRegion() {
    const found = this.state.at && this.told !== false ? this.run.regionOfDecision(this.state.at - 1) : undefined;
    if (this.chosen !== NONE) this.region = this.run.regionOfBox(this.chosen) ?? 0;
    else if (found !== undefined) this.region = found;
    else if (this.region < 0 || this.region >= this.run.regions.length) this.region = busiest(this.run);
  }

  scene(runNumber, region) {
    const key = `${runNumber}:${region}`;
    if (!this.scenes.has(key)) this.scenes.set(key, new Scene(this.data.runs[runNumber], region));
    return this.scenes.get(key);
  }

  // ------------------------------------------------------------ drawing

  open() {
    document.title = `${this.data.title} · hlofuse explore`;
    byId("title").textContent = byId("title").title = this.run.headline;
    byId("totals").replaceChildren(...totalsLine(this.run).map((text) => el("span", {}, text)));
    const picker = byId("run-picker");
    picker.hidden = this.data.runs.length < 2;
    segments(picker, this.data.runs.map((run, n) => [String(n), run.label, run.headline]), this.view.run,
      (run) => this.change({ run }));
    this.panels.open();
    this.timeline.open();
    if (this.drawn === "film") this.passesView.fill();
    this.follow();
  }

  bars() {
    segments(byId("views"), this.views, this.drawn, (view) => this.change({ view }));
    const splits = [["one", "One", "This step"], ["ends", "Before | after", "The module before and after fusion"]];
    if (this.data.runs.length > 1) splits.push(["runs", "Both", `${this.data.runs.map((r) => r.label).join(" and ")}, each after fusion`]);
    if (!splits.some(([key]) => key === this.view.split)) this.view.split = "one";
    segments(byId("splits"), splits, this.view.split, (split) => this.change({ split }));
  }

  follow() {
    this.timeline.follow();
    this.panels.follow();
    this.bars();
    this.draw();
    this.mark();
    legend(this.drawn);
    const { at } = this.state;
    const parts = this.drawn === "film" ? this.passesView.details() : [];
    if (parts.length) return this.tell(parts);
    if (this.edge) parts.push(edgeDetails(this, ...this.edge));
    if (this.view.line) parts.push(lineDetails(this, this.view.line));
    if (this.chosen !== NONE) parts.push(boxDetails(this, this.chosen, this.chosenOp));
    if (at && this.told) parts.push(decisionDetails(this, at - 1));
    if (!parts.length) parts.push(welcome(this));
    this.tell(parts);
  }

  tell(parts) {
    byId("details").replaceChildren(...parts);
    this.writeHash();
  }

  // What the panes show: [run, step, label] each.
  shown() {
    const now = Number(this.view.run);
    if (this.view.split === "ends") return [[now, 0, sideText("Before fusion", this.run.before)], [now, this.run.length, sideText("After fusion", this.run.after, this.run.before)]];
    if (this.view.split === "runs") {
      const [first, second] = this.data.runs;
      return [[0, first.length, sideText(first.label, first.after)], [1, second.length, sideText(second.label, second.after, first.after)]];
    }
    return [[now, this.state.at, ""]];
  }

  // The kernels of a chosen line, and those that differ between two runs.
  mark() {
    const line = linesOf(this.run).get(this.view.line), shown = this.shown();
    const own = this.chosen === NONE ? undefined : this.run.kernelOfBox(this.chosen), paired = pairedKernel(this.data, this.run, own);
    this.panes.forEach((pane, k) => pane.element.querySelectorAll("[data-box], .node[data-op]").forEach((element) => {
      const run = this.data.runs[shown[k][0]], box = Number(element.dataset.box ?? element.dataset.op);
      const kernel = element.dataset.box === undefined ? run.kernelAt.get(box) : run.kernelOfBox(box);
      const chosen = run === this.run ? line?.kernels.has(kernel) || own === kernel : paired === kernel;
      element.classList.toggle("marked", Boolean(kernel && chosen));
      const different = this.view.split === "runs" ? differencesOf(this, run, kernel) : [];
      for (const name of DIFFERENCES) element.classList.toggle(name, different.includes(name));
    }));
  }

  draw() {
    const film = this.drawn === "film";
    document.body.classList.toggle("passes", film);
    byId("splits").hidden = byId("fit").hidden = film;
    if (film) {
      this.panes = [];
      if (this.passesView.element.parentNode !== byId("panes")) byId("panes").replaceChildren(this.passesView.element);
      byId("where").textContent = "";
      byId("region-back").hidden = byId("region-next").hidden = true;
      return;
    }
    const shown = this.shown();
    if (this.panes.length !== shown.length) {
      this.panes = shown.map(() => new Pane());
      byId("panes").replaceChildren(...this.panes.map((p) => p.element));
    }
    shown.forEach(([number, step, label], n) => this.drawPane(this.panes[n], number, step, label));
    const many = this.run.regions.length, steps = this.drawn === "steps";
    byId("where").textContent = byId("where").title = steps && many > 1 ? `part ${this.region + 1} of ${many}  ${regionText(this.run, this.region)}` : "";
    byId("region-back").hidden = byId("region-next").hidden = !steps || many < 2;
    byId("region-back").disabled = this.region === 0;
    byId("region-next").disabled = this.region === many - 1;
  }

  drawPane(pane, number, step, label) {
    const run = this.data.runs[number];
    const own = number === Number(this.view.run);
    let state = this.states[number];
    if (!own || step !== state.at) {
      state = this.still ??= new Map();
      const key = `${number}:${step}`;
      if (!state.has(key)) { const s = new State(run); s.goTo(step); state.set(key, s); }
      state = state.get(key);
    }
    if (this.drawn !== "steps") {
      const drawn = drawOverview(run, state, this.drawn, own && this.told ? this.state.at - 1 : NONE, this.act, pane.width);
      pane.show(`${number}:${this.drawn}`, drawn.group, drawn.width, drawn.height, label, undefined, READABLE_SHEET);
      return;
    }
    if (!run.regions.length) return;
    const region = own ? this.region : this.regionAlike(run);
    const scene = this.scene(number, region);
    const decision = own && step === this.state.at && this.told && this.view.split === "one" ? step - 1 : NONE;
    const group = drawRegion(scene, state, decision, own ? (this.chosenOp !== NONE ? this.chosenOp : this.chosen) : NONE, this.act);
    const focus = decision !== NONE ? focusOf(scene, state, decision) : this.chosen !== NONE && own ? placeOf(scene, state, this.chosen) : undefined;
    pane.show(`${number}:${region}`, group, scene.width, scene.height + 44, label, focus);
  }

  // The part of the other replay that holds the same operations as the part on show.
  regionAlike(other) {
    const wanted = this.run.regions[this.region].kernels.flatMap((k) => k.inside);
    const counts = new Map();
    for (const op of wanted) {
      const box = other.boxNamed.get(this.run.names[op]), region = other.regionOfBox(box ?? NONE);
      if (region !== undefined) counts.set(region, (counts.get(region) ?? 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
  }
}

// The part with the largest kernel: the one to begin with.
function busiest(run) {
  const size = (region) => greatest(0, region.kernels.map((k) => k.inside.length));
  return run.regions.reduce((best, region, n) => (size(region) > size(run.regions[best]) ? n : best), 0);
}

readData().then((data) => {
  window.explorer = new App(data);
  document.documentElement.dataset.ready = "yes";
}).catch((error) => {
  byId("title").textContent = "This page could not be read";
  byId("totals").textContent = String(error);
  throw error;
});
