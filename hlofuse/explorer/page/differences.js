// Two replays side by side: the kernels that differ, largest difference first.

class Differences {
  constructor(app) {
    this.app = app;
    this.list = new LongList("What differs", (d) => this.row(d), (d) => this.choose(d));
  }

  // Pairs of kernels that differ, in operations, time or bytes.
  get found() {
    const { data } = this.app, [one, other] = data.runs;
    this.differing ??= data.pairs.map(([a, b, same]) => ({ first: one.kernels[a], second: other.kernels[b], same }))
      .map((d) => ({ ...d, change: changeOf(d), bytes: movedBytes(d.second) - movedBytes(d.first) }))
      .filter((d) => !d.same || Math.abs(d.change) >= 0.005 || d.bytes)
      .sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || Math.abs(b.bytes) - Math.abs(a.bytes));
    return this.differing;
  }

  open() {
    const { runs } = this.app.data, { found } = this, same = this.app.data.pairs.length - found.length;
    this.list.show(found, this.index());
    const text = found.length ? `${countText(found.length, "difference")}, largest first; ${countText(same, "kernel")} the same. `
      + "In the picture: red frame, on one side only; yellow frame, other operations; red and green time, slower and faster." : "Both run the same kernels.";
    return [totalsTable(runs.map((r) => r.label), runs[0].after, runs[1].after), el("p", { class: "note" }, text), this.list.element];
  }

  follow() { this.list.select(this.index()); }

  index() {
    const kernel = this.app.chosenKernel;
    return kernel ? this.found.findIndex((d) => d.first === kernel || d.second === kernel) : -1;
  }

  choose({ first, second }) {
    const { app } = this;
    app.view.split = "runs";
    app.view.line = "";
    app.view.view = app.drawn === "steps" ? "steps" : "fusion";
    // The run on show if it has the kernel, else the other.
    const run = (app.view.run === "0" ? first : second) ? app.view.run : first ? "0" : "1";
    if (run !== app.view.run) app.change({ run });
    app.showKernel(run === "0" ? first : second);
    app.panels.open();
    app.panes.forEach((pane) => pane.revealMarked());
  }

  row({ first, second, change, bytes, same }) {
    const labels = this.app.data.runs.map((r) => r.label), kernel = second ?? first;
    const timed = kernel.us !== null;
    const kind = !first ? `only in ${labels[1]}` : !second ? `only in ${labels[0]}` : same ? "" : "other operations";
    const costs = [first, second].filter(Boolean).map(costText).join(" → ");
    const name = first && second && first.name !== second.name ? `${first.name} → ${second.name}` : kernel.name;
    return [
      el("span", { class: `dot ${!first ? "fuse" : !second ? "ineligible" : "priority"}`, "aria-hidden": "true" }),
      el("span", { class: "first", title: name }, name),
      el("span", { class: "worth" }, differenceText(0, timed ? change : bytes, timed ? timeText : bytesText)),
      el("span", { class: "second" }, [kind, kernel.own, costs].filter(Boolean).join(" · ")),
    ];
  }
}

// The difference of times; none where a lower bound leaves open which side is slower.
function changeOf({ first, second }) {
  const change = totalUs(second) - totalUs(first), isOpen = first && second && first.floor !== second.floor;
  return isOpen && (second.floor ? change < 0 : change > 0) ? 0 : change;
}

function movedBytes(kernel) { return kernel ? totalBytes(kernel) : 0; }

// The kernel of the other run that computes the same.
function pairedKernel(data, run, kernel) {
  if (data.runs.length < 2 || !kernel) return undefined;
  const own = data.runs.indexOf(run), pair = data.pairs.find((p) => p[own] === kernel.n);
  return pair && data.runs[1 - own].kernels[pair[1 - own]];
}

const DIFFERENCES = ["alone", "changed", "slower", "faster"];

// What is different about a kernel: a class for each.
function differencesOf(app, run, kernel) {
  const { differences } = app.panels;
  differences.of ??= new Map(differences.found.flatMap((d) => [[d.first, d], [d.second, d]]));
  const found = kernel && differences.of.get(kernel);
  if (!found) return [];
  const { first, second, change, same } = found;
  if (!first || !second) return ["alone"];
  const more = kernel === second ? change : -change;
  return [!same && "changed", more >= 0.005 && "slower", more <= -0.005 && "faster"];
}

function comparisonDetails(app, kernel) {
  const other = pairedKernel(app.data, app.run, kernel), run = app.data.runs.find((r) => r !== app.run);
  if (!run) return null;
  if (!other) return el("p", { class: "note" }, `No kernel of ${run.label} computes the same.`);
  const rows = [["time", costText], ["moved", (k) => bytesText(k.bytes)], ["work", (k) => flopText(k.flops)], ["bound", (k) => k.bound], ["kind", (k) => k.kind]];
  return fold(`Compared with ${run.label}`, true, el("table", { class: "totals" },
    el("thead", {}, el("tr", {}, ...["", app.run.label, run.label].map((label) => el("th", { scope: "col" }, label)))),
    el("tbody", {}, ...[["name", (k) => k.name], ...rows].map(([name, text]) => el("tr", { class: text(kernel) === text(other) ? "" : "differs" },
      el("th", { scope: "row" }, name), el("td", {}, text(kernel)), el("td", {}, text(other)))))));
}
