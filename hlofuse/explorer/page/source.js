// The user's program: its lines with the kernels and the time of each. The text where the page contains it.

const SOURCE_ROW = 18, MOST_STRIPES = 6;

function placeOfKey(key) { return key.split(":").map(Number); }

function lineKey([file, line]) { return `${file}:${line}`; }

// By line: the kernels that contain an operation of it, and the time of those that reports name after it.
function linesOf(run) {
  if (run.lines) return run.lines;
  run.lines = new Map();
  const at = (file, line) => {
    const key = lineKey([file, line]);
    if (!run.lines.has(key)) run.lines.set(key, { file, line, kernels: new Set(), us: 0, bytes: 0, floor: false, text: "" });
    return run.lines.get(key);
  };
  const { ops } = run;
  for (const { kernels } of run.regions)
    for (const { box, inside } of kernels) {
      const kernel = run.kernelAt.get(box);
      if (!kernel) continue;
      for (const op of inside) {
        if (ops.file[op] === NONE) continue;
        const found = at(ops.file[op], ops.line[op]);
        found.kernels.add(kernel);
      }
    }
  for (const kernel of run.kernels) {
    if (kernel.place[0] === NONE) continue;
    const found = at(...kernel.place);
    found.kernels.add(kernel);
    found.us += totalUs(kernel);
    found.floor ||= kernel.floor;
    found.bytes += totalBytes(kernel);
  }
  return run.lines;
}

// By text: the kernels that contain an operation of a source line, also of one in an installed package.
function sourcesOf(run) {
  if (run.sources) return run.sources;
  run.sources = new Map(distinct(run.ops.source).map((text) => [text, { text, kernels: new Set(), us: 0, bytes: 0 }]));
  for (const { kernels } of run.regions)
    for (const { box, inside } of kernels) {
      const kernel = run.kernelAt.get(box);
      if (kernel) for (const op of inside) run.sources.get(run.ops.source[op])?.kernels.add(kernel);
    }
  for (const kernel of run.kernels) {
    const found = run.sources.get(kernel.source);
    if (!found) continue;
    found.kernels.add(kernel);
    found.us += totalUs(kernel);
    found.floor ||= kernel.floor;
    found.bytes += totalBytes(kernel);
  }
  return run.sources;
}

// The line of a key `file:line`, or of the text of a source line.
function foundLine(run, key) { return linesOf(run).get(key) ?? sourcesOf(run).get(key); }

// Slowest first; without times by bytes.
function slowestFirst(items) { return [...items].sort((a, b) => b.us - a.us || b.bytes - a.bytes); }

function lineName(app, { file, line }) { return `${app.data.files[file].name}:${line}`; }

// With the function, where an operation names it.
function lineTitle(app, line) {
  if (line.text) return line.text;
  const name = lineName(app, line);
  return line.text = [...sourcesOf(app.run).keys()].find((text) => text === name || text.startsWith(`${name} `)) ?? name;
}

function lineLink(app, place, text) {
  if (place[0] === NONE) return sourceLink(app, text);
  return el("button", { type: "button", class: "link-button", title: "The kernels of this line", onclick: () => app.chooseLine(lineKey(place)) }, text);
}

class SourcePane {
  constructor(app) {
    this.app = app;
    this.lines = new LongList("Source lines, slowest first", (line) => this.row(line), (line) => app.chooseLine(lineKey([line.file, line.line])));
    this.text = new LongList("Source", (n) => this.textRow(n), (n) => this.choose(n), SOURCE_ROW);
    this.text.element.classList.add("program");
    this.file = NONE;
  }

  open() {
    const { app } = this, { run, data } = app, lines = linesOf(run);
    this.sorted = slowestFirst(lines.values());
    const embedded = data.files.flatMap((f, n) => (f.embedded ? [n] : []));
    if (!embedded.includes(this.file)) this.file = this.sorted.find((l) => data.files[l.file].embedded)?.file ?? embedded[0] ?? NONE;
    this.marks = this.marked();
    if (this.file === NONE) {
      this.lines.show(this.sorted, this.index());
      const none = lines.size ? "hlofuse explore --source auto shows the program itself." : "The dump names no source lines.";
      return [el("p", { class: "note" }, `${countText(lines.size, "line")}, ${run.timed ? "slowest" : "most bytes"} first. ${none}`), this.lines.element];
    }
    this.showText();
    const choice = el("select", { id: "source-file", "aria-label": "Source file", onchange: (event) => { this.file = Number(event.target.value); app.panels.open(); } },
      ...embedded.map((n) => el("option", { value: n, selected: n === this.file }, data.files[n].name)));
    const { note } = data.files[this.file];
    const missing = data.files.filter((f) => f.note && !f.embedded);
    return [el("div", { class: "source-bar" }, choice, note && el("span", { class: "warning" }, note)),
      el("p", { class: "note" }, "Colours: kernels with an operation of the line, as in the picture. Times: kernels that reports name after the line."),
      missing.length ? el("p", { class: "note" }, missing.slice(0, 3).map((f) => `${f.name}: ${f.note}`).join("; ")) : "", this.text.element];
  }

  async showText() {
    this.rows = (await this.app.data.texts()).files[this.file].split("\n");
    const index = this.textIndex(), slowest = this.sorted.find((line) => line.file === this.file);
    this.text.show(this.rows.map((_, n) => n), index);
    if (index === NONE && slowest) this.text.element.scrollTop = Math.max(0, slowest.line - 12) * SOURCE_ROW;
  }

  // Another choice only.
  follow() {
    this.marks = this.marked();
    if (this.file === NONE) return this.lines.select(this.index());
    const files = [...this.marks].map((key) => placeOfKey(key)[0]);
    if (files.length && !files.includes(this.file)) {
      this.file = files.find((file) => this.app.data.files[file].embedded) ?? this.file;
      this.app.panels.open();
    } else if (this.rows) this.text.select(this.textIndex());
  }

  // The lines of what is chosen: the line itself, or those of the kernel.
  marked() {
    const { app } = this, { run, chosenKernel: kernel } = app;
    if (app.view.line) return new Set(linesOf(run).has(app.view.line) ? [app.view.line] : []);
    return new Set([...linesOf(run)].filter(([, line]) => line.kernels.has(kernel)).map(([key]) => key));
  }

  index() { return this.sorted.findIndex((line) => this.marks.has(lineKey([line.file, line.line]))); }

  // The row to scroll to: the line that reports name the kernel after, else its first.
  textIndex() {
    const kernel = this.app.chosenKernel;
    if (kernel && !this.app.view.line && kernel.place[0] === this.file) return kernel.place[1] - 1;
    const rows = [...this.marks].map(placeOfKey).filter(([file]) => file === this.file).map(([, line]) => line - 1);
    return rows.sort((a, b) => a - b)[0] ?? NONE;
  }

  choose(n) {
    const key = lineKey([this.file, n + 1]);
    if (linesOf(this.app.run).has(key)) this.app.chooseLine(key);
  }

  row(line) {
    const us = line.us ? kernelTime(line) : "";
    return [
      stripes(this.app, line),
      el("span", { class: "first" }, lineTitle(this.app, line)), el("span", { class: "worth" }, us || bytesText(line.bytes)),
      el("span", { class: "second" }, `${countText(line.kernels.size, "kernel")}: ${[...line.kernels].map((k) => k.name).slice(0, 4).join(", ")}`),
    ];
  }

  textRow(n) {
    const { run } = this.app, key = lineKey([this.file, n + 1]), line = linesOf(run).get(key);
    return [
      el("span", { class: "number" }, String(n + 1)), line ? stripes(this.app, line) : el("span", { class: "stripes" }),
      el("span", { class: "worth" }, line?.us ? kernelTime(line) : ""),
      el("code", { class: this.marks.has(key) ? "marked" : "" }, this.rows[n] || " "),
    ];
  }
}

// A stripe for each kernel of a line, in its colour in the picture.
function stripes(app, line) {
  const colours = colouring(app.run, app.colour);
  const kernels = slowestFirst(line.kernels).slice(0, MOST_STRIPES);
  return el("span", { class: "stripes", title: kernels.map((k) => k.name).join(", ") },
    ...kernels.map((k) => el("span", { class: `stripe ${colours.box(k.box, NONE)}` })));
}

// The kernels of a line, and a way to its decisions.
function lineDetails(app, key) {
  const { run } = app, line = foundLine(run, key);
  if (!line) return el("article", {}, el("h2", {}, "No kernel of this line"));
  const kernels = [...line.kernels].sort((a, b) => totalUs(b) - totalUs(a) || b.bytes - a.bytes);
  return el("article", { class: "line-details" },
    el("h2", {}, lineTitle(app, line)),
    facts([["kernels", numberText(kernels.length)], ["time", line.us > 0 && `${kernelTime(line)} in kernels named after this line`]]),
    el("ul", { class: "values" }, ...capped(kernels, 60, (k) => el("li", {}, kernelLink(app, k), el("small", {}, ` ${[costText(k), k.bound].filter(Boolean).join(" · ")}`)))),
    !run.isFused && sourcesOf(run).has(line.text) && el("p", {}, sourceLink(app, line.text, "All decisions about this line")));
}
