// The page as a whole: what is shown, and the address that says so.

const VIEWS = [
  ["steps", "Steps", "Operations and fusions around the decision"],
  ["fusion", "Kernels", "The whole module, a box for each kernel"],
  ["scope", "Scopes", "The whole module by the functions of the program and the framework's scopes"],
  ["computation", "Computations", "The whole module by computation"],
  ["film", "Passes", "What every pass of the compilation did, first dump to last"],
];
const DEFAULTS = { view: "", split: "one", tab: "", line: "", run: "0", kind: "", pass: "", rule: "", computation: "", source: "", q: "", show: "", group: "", edge: "", why: "", find: "", colour: "", open: "", dump: "", only: "", order: "", every: "" };

const MOST_PREPARED = 120, PREPARED_AFTER = 500, LONGEST_LINK = 2000, MOST_OPENED = 12, MOST_HLO = 14;

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
    this.outlines = new Map();
    this.opened = new Map();  // by view: what was opened and closed by hand
    this.hits = null;
    this.hitAt = -1;
    this.panels = new Panels(this);
    this.timeline = new Timeline(this);
    this.search = new Search(this);
    this.views = VIEWS.filter(([key]) => key !== "film" || data.passTimeline);
    this.passesView = data.passTimeline ? new PassesView(this) : null;
    this.keys = new Keys(this);
    this.act = {
      box: (box) => this.choose(box), operation: (op, box) => this.choose(box, op), edge: (from, to, pairs) => this.showEdge(from, to, pairs),
      rule: (decision, pair) => this.showRule(decision, pair), group: (node) => this.chooseGroup(node.id), toggle: (id, opened) => this.toggle(id, opened),
      leave: (box) => this.showBox(box), hlo: (run, kind, n) => this.hlo(run, kind, n),
    };
    byId("fold").addEventListener("click", () => this.foldAll(false));
    byId("unfold").addEventListener("click", () => this.foldAll(true));
    byId("hit-back").addEventListener("click", () => this.nextHit(-1));
    byId("hit-next").addEventListener("click", () => this.nextHit(1));
    byId("colour").addEventListener("change", (event) => this.change({ colour: event.target.value }));
    byId("fit").addEventListener("click", () => this.panes.forEach((p) => p.fit()));
    byId("region-back").addEventListener("click", () => this.openRegion(this.region - 1));
    byId("region-next").addEventListener("click", () => this.openRegion(this.region + 1));
    window.addEventListener("hashchange", () => { if (location.hash !== this.hash) this.readHash(); });
    this.readHash();
    setTimeout(() => this.prepare(0), PREPARED_AFTER);
  }

  // While nothing else is to be done the parts are laid out that one may come to.
  prepare(region) {
    // Not every browser tells when it is idle.
    if (!window.requestIdleCallback || region >= Math.min(this.data.runs[0].regions.length, MOST_PREPARED)) return;
    requestIdleCallback((idle) => {
      const now = idle.timeRemaining() > 8;
      if (now) this.scene(0, region);
      this.prepare(region + (now ? 1 : 0));
    });
  }

  // The first lines of the HLO of an operation or a kernel.
  async hlo(run, kind, n) {
    const lines = (await this.data.texts())[kind][this.data.runs.indexOf(run)][n].split("\n");
    return [...lines.slice(0, MOST_HLO), ...(lines.length > MOST_HLO ? [`… ${numberText(lines.length - MOST_HLO)} more lines`] : [])].map((line) => shortName(line, 160)).join("\n");
  }

  get run() { return this.data.runs[Number(this.view.run)]; }

  // What is drawn: what was asked for, else the step if one was chosen, else all of the module.
  get drawn() { return this.view.view || (this.stepShown ? "steps" : "fusion"); }

  // The chosen colours; next to the program a colour for each kernel.
  get colour() { return this.view.colour || (document.body.classList.contains("program") ? "kernel" : "kind"); }

  get state() { return this.states[Number(this.view.run)]; }

  // ------------------------------------------------------------ the address

  readHash() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const view = { ...DEFAULTS };
    for (const name of Object.keys(DEFAULTS)) if (parameters.has(name)) view[name] = parameters.get(name);
    if (!this.data.runs[Number(view.run)]) view.run = "0";
    if (!this.views.some(([key]) => key === view.view)) view.view = "";
    if (!COLOURINGS.some(([key]) => key === view.colour)) view.colour = DEFAULTS.colour;
    this.view = view;
    const { length } = this.run;
    const step = parameters.has("step") ? Number(parameters.get("step")) : length;
    this.state.goTo(Number.isInteger(step) ? Math.min(length, Math.max(0, step)) : length);
    this.letGo();
    Object.assign(view, { line: parameters.get("line") ?? "", group: parameters.get("group") ?? "", edge: parameters.get("edge") ?? "", why: parameters.get("why") ?? "" });
    if (view.show && this.run.boxOf(view.show) !== undefined) {
      this.chosen = this.run.boxOf(view.show);
      this.chosenOp = this.run.names[this.chosen] === view.show ? this.chosen : NONE;
      if (this.chosenOp !== NONE && !this.state.alive[this.chosen]) this.chosen = [...this.state.holders[this.chosenOp]].at(-1) ?? this.chosen;
    }
    if (this.chosen === NONE) this.added = this.run.kernels.find((k) => k.box === NONE && k.name === view.show) ?? null;
    const pair = view.edge.split("-").map(Number);
    if (pair.length === 2 && pair.every((box) => Number.isInteger(box) && box >= 0 && box < this.run.boxes)) this.edge = pair;
    this.why = this.edge && view.why !== "" && this.run.decisions.kind[Number(view.why)] ? Number(view.why) : NONE;
    this.readOpened(view.open);
    this.hits = view.find.length > 1 ? this.search.hits(view.find) : null;
    byId("search").value = view.find;
    this.stepShown = parameters.has("step") && this.state.at > 0;
    this.settleRegion();
    if (this.chosen !== NONE) this.reveal(this.chosen, this.chosenOp);
    this.open();
  }

  // What was opened by hand, in the view of the link.
  readOpened(text) {
    let pairs = [];
    try { pairs = JSON.parse(text || "[]"); } catch { /* a link that was cut: as if it did not say */ }
    if (!Array.isArray(pairs)) return;
    const opened = this.openedHere;
    for (const id of pairs) if (typeof id === "string") opened.set(id.slice(1), id[0] === "+");
  }

  get openedHere() {
    if (!this.opened.has(this.drawn)) this.opened.set(this.drawn, new Map());
    return this.opened.get(this.drawn);
  }

  writeHash() {
    const open = JSON.stringify([...this.openedHere].map(([id, on]) => `${on ? "+" : "-"}${id}`));
    this.view.open = open === "[]" || open.length > LONGEST_LINK ? "" : open;
    this.view.edge = this.edge ? this.edge.join("-") : "";
    this.view.why = this.edge && this.why !== NONE ? String(this.why) : "";
    // Without a step: the final module, and no decision in question.
    const parameters = new URLSearchParams(this.stepShown || this.state.at !== this.run.length ? { step: this.state.at } : {});
    for (const [name, value] of Object.entries(this.view)) if (value !== DEFAULTS[name]) parameters.set(name, value);
    this.hash = `#${parameters}`;
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
      this.stepShown = false;
      this.settleRegion();
    }
    this.open();
  }

  clearFilters() { this.change({ kind: "", pass: "", rule: "", computation: "", source: "", q: "" }); }

  // The kernel that is chosen, or that contains what is.
  get chosenKernel() { return this.added ?? (this.chosen === NONE ? undefined : this.run.kernelOfBox(this.chosen)); }

  // Kernels that later passes added have no box.
  showKernel(kernel) {
    if (kernel.box !== NONE) return this.showBox(kernel.box);
    this.letGo();
    this.added = kernel;
    this.view.show = kernel.name;
    this.follow();
  }

  // All kernels with an operation of a source line: `file:line`.
  chooseLine(line) {
    this.letGo();
    this.view.show = "";
    this.view.line = line;
    this.stepShown = false;
    this.state.goTo(this.run.length);
    if (this.drawn === "film") this.view.view = "";
    const kernels = [...foundLine(this.run, line)?.kernels ?? []];
    const outline = this.drawn === "steps" ? null : this.outline(Number(this.view.run), this.state);
    if (outline) kernels.filter((k) => outline.leafOf.has(k.box)).slice(0, MOST_OPENED).forEach((k) => this.reveal(k.box, NONE));
    if (kernels.length && !kernels.some((k) => this.run.regionOfBox(k.box) === this.region)) this.region = this.run.regionOfBox(kernels[0].box) ?? this.region;
    this.follow();
    this.panes.forEach((pane) => pane.revealMarked());
  }

  goTo(step) {
    const at = Math.min(this.run.length, Math.max(0, step));
    this.state.goTo(at);
    this.stepShown = true;
    this.letGo();
    this.view.show = "";
    this.settleRegion();
    this.follow();
  }

  letGo() {
    this.chosen = this.chosenOp = this.why = NONE;
    this.edge = null;
    this.pairs = [];
    this.added = null;
    this.view.group = this.view.line = "";
  }

  // Nothing chosen, nothing searched.
  clear() {
    this.letGo();
    this.view.show = "";
    byId("search").value = "";
    this.find("");
    this.follow();
  }

  choose(box, op = NONE) {
    this.letGo();
    this.chosen = box;
    this.chosenOp = op;
    this.view.show = op !== NONE ? this.run.names[op] : this.state.nameOf(box);
    this.follow();
    if (this.view.split === "runs") this.panes.forEach((pane) => pane.revealMarked());
  }

  chooseGroup(id) {
    this.letGo();
    this.view.show = "";
    this.view.group = id;
    this.follow();
  }

  // Shows a box where it is: in the picture there is, opened as far as need be, else among its operations.
  showBox(box, op = NONE) {
    if (box === NONE) return;
    // What has gone into a fusion is shown there.
    let seen = box;
    if (!this.state.alive[seen] && op !== NONE) seen = [...this.state.holders[op]].at(-1) ?? seen;
    const region = this.run.regionOfBox(seen);
    if (region !== undefined) this.region = region;
    this.reveal(seen, op);
    this.choose(seen, op);
  }

  // Opens all that is around a box; what no collapsed picture draws is among the operations.
  reveal(box, op) {
    if (this.drawn === "steps") return;
    const outline = this.drawn === "film" ? null : this.outline(Number(this.view.run), this.state);
    if (!outline?.leafOf.has(box)) { this.view.view = "steps"; return; }
    outline.open(this.openedHere);
    for (const id of outline.around(box)) if (!outline.nodes.get(id).opened) this.openedHere.set(id, true);
    if (op !== NONE && this.state.members[box].length > 1) this.openedHere.set(`box ${box}`, true);
  }

  // From the box that is read to the one that reads it; a line may stand for several pairs.
  showEdge(from, to, pairs = []) {
    this.letGo();
    this.view.show = "";
    this.edge = [from, to];
    this.pairs = pairs;
    this.follow();
  }

  // The decision that keeps two boxes apart, where they are.
  showRule(decision, pair) {
    if (!pair) return this.goTo(decision + 1);
    this.letGo();
    this.view.show = "";
    this.edge = [...pair];
    this.why = decision;
    this.follow();
  }

  toggle(id, opened) {
    this.anchor = id;
    this.openedHere.set(id, !opened);
    this.follow();
  }

  toggleChosen() {
    const id = this.view.group || (this.chosen !== NONE ? `box ${this.chosen}` : ""), outline = this.shownOutline;
    const node = outline && (outline.nodes.get(id) ?? outline.leafOf.get(this.chosen));
    if (node && (node.kind !== "kernel" || this.state.members[node.box].length > 1)) this.toggle(node.id, node.opened);
  }

  // One more level of folds opened, or the innermost closed.
  foldAll(open) {
    if (!this.shownOutline) return;
    const nodes = visibleNodes(this.shownOutline.root), folds = nodes.filter((n) => n.opened !== open && n.kind !== "kernel");
    const kernels = nodes.filter((n) => n.opened !== open && n.kind === "kernel" && this.state.members[n.box].length > 1);
    const first = open ? (folds.length ? folds : kernels) : kernels.length ? kernels : folds.filter((n) => n.depth === greatest(0, folds.map((f) => f.depth)));
    for (const node of first) this.openedHere.set(node.id, open);
    this.follow();
  }

  // ------------------------------------------------------------ the search in the picture

  find(words) {
    this.view.find = words;
    this.hits = words.length > 1 ? this.search.hits(words) : null;
    this.hitAt = -1;
    this.follow();
  }

  nextHit(by) {
    const list = this.hits?.list ?? [];
    if (!list.length) return;
    this.hitAt = (this.hitAt + by + list.length + (this.hitAt < 0 && by < 0 ? 1 : 0)) % list.length;
    this.showBox(...list[this.hitAt]);
  }

  showHits() {
    const { hits } = this, count = hits?.list.length ?? 0;
    if (hits && this.chosen !== NONE) this.hitAt = hits.list.findIndex(([box, op]) => (op !== NONE ? op === this.chosenOp : box === this.chosen));
    byId("hits").hidden = !hits;
    byId("hit-count").textContent = this.hitAt >= 0 ? `${numberText(this.hitAt + 1)} of ${countText(count, "hit")}` : countText(count, "hit");
    byId("hit-back").disabled = byId("hit-next").disabled = !count;
  }

  showRefused(refusal) { refusal.decision !== NONE ? this.goTo(refusal.decision + 1) : this.showBox(this.run.boxNamed.get(refusal.producer) ?? NONE); }

  openRegion(number) {
    if (number < 0 || number >= this.run.regions.length) return;
    this.region = number;
    this.stepShown = false;
    this.follow();
  }

  settleRegion() {
    const found = this.state.at && this.stepShown !== false ? this.run.regionOfDecision(this.state.at - 1) : undefined;
    if (this.chosen !== NONE) this.region = this.run.regionOfBox(this.chosen) ?? 0;
    else if (found !== undefined) this.region = found;
    else if (this.region < 0 || this.region >= this.run.regions.length) this.region = busiest(this.run);
  }

  scene(runNumber, region, room = this.panes[0]?.room) {
    const key = `${runNumber}:${region}:${room ? [room.width, room.height].map((x) => Math.round(x / 40)) : ""}`;
    if (!this.scenes.has(key)) this.scenes.set(key, new Scene(this.data.runs[runNumber], region, room));
    return this.scenes.get(key);
  }

  // Of the last few steps looked at.
  outline(number, state) {
    // A decision that changes nothing leaves the outline as it is.
    const { ops } = this.data.runs[number].decisions;
    let changed = state.at;
    while (changed && !ops[changed - 1].length) changed--;
    const key = `${number}:${this.drawn}:${changed}`;
    let outline = this.outlines.get(key);
    if (outline?.state !== state) {
      if (this.outlines.size > 3) this.outlines.clear();
      this.outlines.set(key, outline = new Outline(this.data.runs[number], state, this.drawn));
    }
    return outline;
  }

  // ------------------------------------------------------------ drawing

  open() {
    document.title = `${this.data.title} · hlofuse explore`;
    byId("title").textContent = byId("title").title = this.run.headline;
    byId("totals").replaceChildren(...totalsLine(this.run).map((text) => el("span", {}, text)));
    document.querySelector("footer").hidden = this.run.isFused;
    const picker = byId("run-picker");
    picker.hidden = this.data.runs.length < 2;
    segments(picker, this.data.runs.map((run, n) => [String(n), run.label, run.headline]), this.view.run,
      (run) => this.change({ run }));
    this.panels.open();
    this.timeline.open();
    if (this.drawn === "film") this.passesView.fill();
    for (const pane of this.panes) pane.measured = "";  // lists and bars may leave it another room
    this.follow();
  }

  bars() {
    segments(byId("views"), this.views, this.drawn, (view) => this.change({ view }));
    const splits = [["one", "One", "This step"]];
    if (!this.run.isFused) splits.push(["ends", "Before | after", "The module before and after fusion"]);
    if (this.data.runs.length > 1) splits.push(["runs", "Both", `${this.data.runs.map((r) => r.label).join(" and ")}, each after fusion`]);
    if (!splits.some(([key]) => key === this.view.split)) this.view.split = "one";
    byId("splits").hidden = splits.length < 2;
    segments(byId("splits"), splits, this.view.split, (split) => this.change({ split }));
  }

  follow() {
    this.panels.follow();  // first, as it reads a size
    this.timeline.follow();
    this.bars();
    this.draw();
    this.showHits();
    const { at } = this.state;
    const parts = this.drawn === "film" ? this.passesView.details() : [];
    if (parts.length) return this.showDetails(parts);
    const group = this.view.group && this.shownOutline?.nodes.get(this.view.group);
    if (group?.text) parts.push(groupDetails(this, group));
    if (this.edge && this.why !== NONE) parts.push(decisionDetails(this, this.why));
    if (this.edge && this.pairs.length > 1) parts.push(pairsDetails(this));
    if (this.edge) parts.push(edgeDetails(this, ...this.edge));
    if (this.view.line) parts.push(lineDetails(this, this.view.line));
    if (this.added) parts.push(addedDetails(this, this.added));
    if (this.chosen !== NONE) parts.push(boxDetails(this, this.chosen, this.chosenOp));
    if (at && this.stepShown) parts.push(decisionDetails(this, at - 1));
    if (!parts.length) parts.push(welcome(this));
    this.showDetails(parts);
  }

  showDetails(parts) {
    byId("details").replaceChildren(...parts);
    this.fitPanes();
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
    if (!this.view.line && this.data.runs.length < 2) return;
    const line = this.view.line ? foundLine(this.run, this.view.line) : undefined, shown = this.shown();
    const own = this.chosenKernel, paired = pairedKernel(this.data, this.run, own);
    this.panes.forEach((pane, k) => pane.element.querySelectorAll("[data-box], .node[data-op]").forEach((element) => {
      const run = this.data.runs[shown[k][0]], box = Number(element.dataset.box ?? element.dataset.op);
      const kernel = element.dataset.box === undefined ? run.kernelAt.get(box) : run.kernelOfBox(box);
      const chosen = run === this.run ? line?.kernels.has(kernel) || own === kernel : paired === kernel;
      element.classList.toggle("marked", Boolean(kernel && chosen));
      if (kernel && chosen) element.dataset.us = totalUs(kernel);
      const different = this.view.split === "runs" ? differencesOf(this, run, kernel) : [];
      for (const name of DIFFERENCES) element.classList.toggle(name, different.includes(name));
    }));
  }

  draw() {
    const passesShown = this.drawn === "film";
    document.body.classList.toggle("passes", passesShown);
    byId("splits").hidden = byId("fit").hidden = passesShown;
    if (passesShown) {
      this.panes = [];
      if (this.passesView.element.parentNode !== byId("panes")) byId("panes").replaceChildren(this.passesView.element);
      byId("where").textContent = "";
      byId("region-back").hidden = byId("region-next").hidden = true;
      return;
    }
    const shown = this.shown();
    this.shownOutline = null;
    if (this.panes.length !== shown.length) {
      this.panes = shown.map(() => new Pane(() => { this.draw(); this.fitPanes(); }, () => { if (this.chosenKernel || this.chosen !== NONE || this.edge || this.view.group || this.view.line) { this.letGo(); this.view.show = ""; this.follow(); } }));
      byId("panes").replaceChildren(...this.panes.map((p) => p.element));
      if (this.panes.length > 1) this.panes.forEach((pane, n) => { pane.other = this.panes[1 - n]; });
    }
    shown.forEach(([number, step, label], n) => this.drawPane(this.panes[n], number, step, label));
    const choice = byId("colour"), choices = colouringsOf(this.run);
    if (choice.length !== choices.length) choice.replaceChildren(...choices.map(([value, words]) => el("option", { value }, words)));
    choice.value = this.colour;
    legend(this.drawn, colouring(this.run, this.colour));
    this.mark();
    byId("fold").hidden = byId("unfold").hidden = this.drawn === "steps";
    const many = this.run.regions.length, steps = this.drawn === "steps";
    byId("where").textContent = byId("where").title = steps && many > 1 ? `part ${this.region + 1} of ${many}  ${regionText(this.run, this.region)}` : "";
    byId("region-back").hidden = byId("region-next").hidden = !steps || many < 2;
    byId("region-back").disabled = this.region === 0;
    byId("region-next").disabled = this.region === many - 1;
  }

  // A legend of more lines leaves the picture less room. Measured last: everything written before costs one layout.
  fitPanes() {
    const resized = this.panes.filter((pane) => pane.resized()), shown = this.shown();
    for (const pane of resized) this.drawPane(pane, ...shown[this.panes.indexOf(pane)]);
    if (resized.length) this.mark();
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
    const colours = colouring(run, this.colour), decision = own && step === this.state.at && this.stepShown && this.view.split === "one" ? step - 1 : NONE;
    const marks = this.marks(run, own, decision), seen = `${number}:${step}:${marks.chosen}:${marks.op}:${this.hitAt}`, moved = pane.seen !== seen, chosen = `${marks.chosen}:${marks.op}`;
    const near = marks.chosen !== NONE && pane.chosen !== chosen;
    Object.assign(pane, { seen, chosen });
    pane.label.hidden = !label;
    const { room } = pane;
    if (this.drawn !== "steps") {
      const outline = this.outline(number, state), anchor = this.anchor, before = anchor && placeIn(outline, anchor);
      outline.open(this.openedHere);
      if ((own && step === this.state.at) || !this.shownOutline) this.shownOutline = outline;
      const drawn = drawOutline(outline, colours, marks, this.act, room), after = anchor && placeIn(outline, anchor);
      if (before && after) pane.shift(after[0] - before[0], after[1] - before[1]);
      const key = `${number}:${this.drawn}`, isNew = !pane.views.has(key);
      pane.show(key, drawn.group, drawn.width, drawn.height, label, moved || isNew ? drawn.focus : undefined, undefined, near);
      if (pane === this.panes.at(-1)) this.anchor = "";
      return;
    }
    if (!run.regions.length) return;
    const region = own ? this.region : this.equivalentRegion(run);
    const scene = this.scene(number, region, room);
    const group = drawRegion(scene, state, decision, colours, marks, this.act);
    const focus = decision !== NONE ? focusOf(scene, state, decision) : this.chosen !== NONE && own ? placeOf(scene, state, this.chosen) : undefined;
    pane.show(`${number}:${region}`, group, scene.width, scene.height + 30, label, moved ? focus : undefined, beginOf(scene, state));
  }

  // What is marked in a picture: of another replay only what was found.
  marks(run, own, decision) {
    const d = run.decisions, inQuestion = decision === NONE ? [] : [d.producer[decision], d.consumer[decision]];
    const [, consumer = NONE] = inQuestion;
    if (!own) return { chosen: NONE, op: NONE, group: "", edge: null, hits: null, inQuestion: [], kind: "" };
    return {
      chosen: this.chosen, op: this.chosenOp, group: this.view.group, edge: this.edge, hits: this.hits, inQuestion, kind: decision === NONE ? "" : d.kind[decision],
      focus: this.chosen !== NONE ? { box: this.chosen, op: this.chosenOp } : consumer !== NONE ? { box: consumer, op: NONE } : null,
    };
  }

  // The part of the other replay that holds the same operations as the part on show.
  equivalentRegion(other) {
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
