// The panel at the right: the verdict, the decision of the step, what was clicked.

function facts(pairs) {
  return el("dl", {}, ...pairs.filter(([, value]) => value && value !== "–")
    .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function fold(summary, open, ...inside) { return el("details", { open }, el("summary", {}, summary), ...inside); }

function boxLink(app, box, words) {
  if (box === NONE) return el("span", {}, words);
  return el("button", { type: "button", class: "link-button", onclick: () => app.showBox(box) }, words);
}

// Every decision about a line of the user's program.
function sourceLink(app, source, text = source) {
  return source && el("button", {
    type: "button", class: "link-button", title: "All decisions about this line",
    onclick: () => app.change({ tab: "decisions", source, kind: "", pass: "", rule: "", computation: "", q: "" }),
  }, text);
}

function decisionDetails(app, n) {
  const { run, data } = app, d = run.decisions, rule = data.rules.get(d.rule[n]);
  const unit = (value) => (value === null ? "" : timeText(value));
  const priority = d.kind[n] === "priority";
  return el("article", { class: `decision ${d.kind[n]}` },
    el("p", { class: "kicker" }, `Decision ${numberText(n + 1)} of ${numberText(run.length)} · ${run.passes[d.pass[n]]}, step ${numberText(d.step[n])}`),
    el("h2", {}, el("span", { class: `badge ${d.kind[n]}` }, KIND_TEXTS[d.kind[n]]), sentence(run, n)),
    reasonLine(data, run, n) && el("p", { class: "reason" }, reasonLine(data, run, n)),
    facts([
      ["producer", boxLink(app, d.producer[n], run.shown(d.producerName[n]))],
      [priority ? "users" : "consumer", priority
        ? el("span", { class: "many" }, ...d.others[n].map((b) => boxLink(app, b, app.state.shownOf(b))))
        : d.consumerName[n] && boxLink(app, d.consumer[n], run.shown(d.consumerName[n]))],
      ["fused", unit(d.usFused[n])], ["unfused", unit(d.usUnfused[n])], ["saves", unit(d.usSaved[n])],
      ["figures", d.usSaved[n] === null && d.figures[n]], ["XLA's message", d.reason[n] && `“${d.reason[n]}”`],
      ["layer", run.layerOfDecision(n)], ["source", sourceLink(app, run.sourceOfDecision(n))], ["computation", d.computation[n]],
      ["duplicated", d.duplicated[n] ? "the producer remains for its other users" : ""],
    ]),
    rule && fold(`Rule ${rule.code}: ${rule.title}`, false,
      ...rule.sections.flatMap(([heading, text]) => [el("h3", {}, heading), el("p", {}, text)])));
}

function boxDetails(app, box, chosenOp) {
  const { run, state } = app, { ops } = run;
  const op = chosenOp === NONE && !state.fused[box] && box < ops.count ? box : chosenOp;
  const kernel = run.kernelOfBox(box), final = state.at === run.length;
  const isOp = op !== NONE && op < ops.count, inside = state.members[box];
  // A fusion goes by the number of its consumer: only what was chosen tells the two apart.
  const name = isOp && (op !== box || state.fused[box]) ? run.names[op] : state.shownOf(box);
  const now = state.alive[box] ? (state.fused[box] ? `in ${state.shownOf(box)}` : "not fused") : "removed before this step";
  return el("article", { class: "box" },
    el("h2", {}, name),
    isOp && facts([
      ["operation", `${ops.opcode[op]} ${ops.shape[op]}`], ["at this step", !run.isFused && now], ["result", bytesText(ops.bytes[op])],
      ["as one kernel", !run.isFused && launchedText(ops.alone.get(op))], ["layer", ops.layer[op]],
      ["source", sourceLink(app, ops.source[op], placeText(ops.source[op], ops.own[op]))], ["in", scopeOf(run, op).join("/")], ["scope", ops.opName[op]],
      ["runs", (ops.calls[op] ?? []).map((c) => run.computations[c]).join(", ")],
    ]),
    kernel && el("section", { class: "kernel", "aria-label": `Kernel ${kernel.name}` },
      (!final || isOp) && el("h3", {}, final ? `Kernel ${kernel.name}` : `Final kernel ${kernel.name}`), ...kernelDetails(app, kernel)),
    inside.length > 1 && fold(`Contains ${countText(inside.length, "operation")} at this step`, inside.length < 9,
      el("ul", {}, ...capped(inside, 100, (m) => el("li", {}, el("button", {
        type: "button", class: "link-button", onclick: () => app.showBox(m, m),
      }, `${run.names[m]} `), el("small", {}, ops.opcode[m]))))),
    neighbours(app, "Edges from", state.alive[box] && !(kernel && final) ? state.inputs(box) : [], (b) => [b, box]),
    neighbours(app, "Edges to", state.alive[box] && !(kernel && final) ? state.outputs(box) : [], (b) => [box, b]),
    !run.isFused && historyList(app, run.historyOf(isOp && op !== box ? op : box)));
}

// Every decision about two boxes.
function edgeDetails(app, from, to) {
  const { run, state, data } = app, d = run.decisions;
  const about = run.historyOf(from).filter((n) => d.producer[n] === from && (d.consumer[n] === to || d.others[n].includes(to)));
  const bytes = state.members[from].filter((m) => run.ops.users[m].some((u) => state.holders[u].has(to)))
    .reduce((sum, m) => sum + run.ops.bytes[m], 0);
  const last = about.at(-1);
  return el("article", { class: "edge-details" },
    el("h2", {}, `${state.shownOf(from)} → ${state.shownOf(to)}`),
    facts([["bytes", bytesText(bytes)], ["producer", boxLink(app, from, state.shownOf(from))], ["consumer", boxLink(app, to, state.shownOf(to))]]),
    last === undefined ? el("p", {}, "No fusion pass considered this pair.")
      : el("p", { class: "reason" }, `${KIND_TEXTS[d.kind[last]]}${d.rule[last] && ` (${d.rule[last]})`}: ${reasonLine(data, run, last)}`),
    historyList(app, about));
}

function historyList(app, decisions) {
  const d = app.run.decisions;
  return fold(`History: ${countText(decisions.length, "decision")}`, decisions.length < 12,
    el("ol", { class: "history" }, ...capped(decisions, 100, (n) => el("li", {}, el("button", {
      type: "button", class: "link-button", onclick: () => app.goTo(n + 1),
    }, el("span", { class: `dot ${d.kind[n]}`, "aria-hidden": "true" }), `${n + 1} ${sentence(app.run, n)}`)))));
}

function edgeButton(app, from, to) {
  const label = `Decisions about ${app.state.shownOf(from)} and ${app.state.shownOf(to)}`;
  return el("button", { type: "button", class: "small", "aria-label": label, onclick: () => app.showEdge(from, to) }, "decisions");
}

function neighbours(app, title, boxes, edge) {
  const list = [...boxes];
  if (!list.length) return null;
  return fold(`${title} ${countText(list.length, "box", "boxes")}`, list.length < 5,
    el("ul", {}, ...capped(list, 60, (b) => el("li", {}, boxLink(app, b, app.state.shownOf(b)), " ", edgeButton(app, ...edge(b))))));
}

// The page opens with the verdict, as `hlofuse explain` does.
function welcome(app) {
  const { run, data } = app, { split } = app.view;
  const refused = run.refusedEdges.length;
  return el("article", { class: "verdict" },
    split === "ends" && el("h2", {}, "Before and after fusion"),
    split === "ends" && totalsTable(["before", "after"], run.before, run.after),
    el("h2", {}, "Verdict"),
    ...run.verdict.map((line) => el("p", { class: /^\d\. /.test(line) ? "suggestion" : /^\S+ {2,}/.test(line) ? "code" : "" }, line)),
    functionsTable(app),
    slowest(app),
    memoryAtPeak(app),
    !run.isFused && el("h2", {}, `Why ${countText(run.kernels.length, "kernel")}?`),
    !run.isFused && el("p", {}, refused ? `Rules forbid to fuse ${countText(refused, "pair")} of them:` : "No rule forbids to fuse two of them."),
    el("ul", { class: "why" }, ...refusedByRule(run).map(([code, edges]) => el("li", {},
      el("button", { type: "button", class: "link-button", onclick: () => app.change({ tab: "refused", rule: code }) }, code),
      el("strong", {}, ` ${countText(edges.length, "pair")}, ${worthOf(edges)}`),
      el("div", {}, data.rules.get(code)?.title ?? "")))),
    decisionCounts(app),
    ...run.notes.map((note) => el("p", { class: "note" }, note)));
}

// The shares of the user's functions; a name marks its operations in the picture.
function functionsTable(app) {
  const { directions, share_of: unit } = app.run.functions;
  const rows = app.run.functions.rows.filter((row) => row.share);
  if (!rows.length) return null;
  const columns = ["forward", "backward", "recomputed"].filter((d) => directions[d]);
  const find = (row) => { byId("search").value = row.name.replace(/ itself$/, ""); app.find(byId("search").value); };
  const figure = (row) => (unit === "measured" ? timeText(row.measured_us) : unit === "estimated" ? kernelTime(row, row.time_us) : bytesText(row.bytes));
  return el("div", { class: "wide" }, el("table", { class: "totals functions" },
    el("caption", {}, `By function, ${unit === "bytes" ? "bytes" : `${unit} time`}`),
    el("thead", {}, el("tr", {}, ...["", ...columns].map((d) => el("th", { scope: "col" }, d, directions[d] && el("div", { class: "soft" }, percentText(directions[d])))))),
    el("tbody", {}, ...rows.map((row) => el("tr", {},
      el("th", { scope: "row" }, row.name ? el("button", { type: "button", class: "link-button", title: "Mark its operations", onclick: () => find(row) }, row.name) : "(unnamed)",
        el("div", { class: "soft" }, `${percentText(row.share)} · ${figure(row)}`)),
      ...columns.map((d) => el("td", {}, row.directions[d] ? percentText(row.directions[d]) : "–")))))));
}

// The temporary arrays that are alive when most bytes are.
function memoryAtPeak(app) {
  const found = app.run.memory;
  if (!found?.alive.length) return null;
  const plot = `data:image/svg+xml,${encodeURIComponent(app.run.memoryPlot)}`;
  return fold(`Memory: ${bytesText(found.memory.total)} in all, temporary arrays at the peak`, false, el("button", { type: "button", class: "memory-plot", title: "Show it larger", "aria-label": "Plot of memory, larger", onclick: () => enlarge(plot) }, el("img", { src: plot, alt: "Temporary arrays alive at each instruction" })), el("ul", { class: "values" },
    ...capped(found.alive, 12, (a) => el("li", {}, namedKernel(app, a.name, a.name), el("small", {}, ` ${[bytesText(a.bytes), a.shape, a.source].filter(Boolean).join(" · ")}`)))));
}

function enlarge(picture) {
  const dialog = byId("keys");
  dialog.replaceChildren(el("img", { class: "large", src: picture, alt: "Temporary arrays alive at each instruction" }), el("form", { method: "dialog" }, el("button", {}, "Close")));
  dialog.showModal();
}

// The kernels of the verdict, grouped as there; a name leads to the first of its kernels.
function slowest(app) {
  const { run } = app;
  if (!run.slowest.length) return null;
  const timed = run.after.time_us !== null, more = run.kernels.length - run.slowest.length;
  return el("table", { class: "totals slowest" },
    el("caption", {}, `${run.isMeasured ? "Slowest kernels, measured" : timed ? `Slowest kernels${run.isFused ? "" : ", launch overhead included"}` : "Kernels that move most bytes"}${more > 0 ? ` (${run.slowest.length} of ${numberText(run.kernels.length)})` : ""}`),
    el("tbody", {}, ...run.slowest.map(([name, figure, share, shown, source, bound]) => el("tr", {},
      el("td", {}, figure, el("div", { class: "soft" }, share)),
      el("td", {}, namedKernel(app, name, shown), el("div", { class: "soft" }, [source, bound].filter(Boolean).join(" · ")))))));
}

function namedKernel(app, name, text) {
  const kernel = app.run.kernels.find((k) => k.name === name);
  return kernel ? el("button", { type: "button", class: "link-button", onclick: () => app.showKernel(kernel) }, text) : text;
}

function decisionCounts(app) {
  const { run } = app, count = (kind) => run.decisions.kind.filter((k) => k === kind).length;
  if (!run.length) return null;
  return el("p", {}, `${countText(run.length, "decision")}: ${numberText(count("fuse"))} fusions, ${numberText(count("ineligible"))} refusals, `
    + `${numberText(count("priority"))} estimates, ${numberText(count("rewrite"))} rewrites. `,
    el("button", { type: "button", class: "link-button", onclick: () => app.goTo(1) }, "Go to the first decision"), " (→ for the next).");
}

function refusedByRule(run) {
  const found = new Map();
  run.refusedEdges.forEach((h) => found.set(h.rule, [...(found.get(h.rule) ?? []), h]));
  return [...found];
}

// A producer counts once, and a fusion that saves nothing does not count, as in `hlofuse explain`.
function worthOf(edges) {
  const timed = new Map(edges.filter((h) => h.us > 0).map((h) => [h.producer, h.us]));
  const us = [...timed.values()].reduce((sum, t) => sum + t, 0);
  return us > 0 ? `${timeText(us)} if allowed` : bytesText(edges.reduce((sum, h) => sum + h.bytes, 0));
}
