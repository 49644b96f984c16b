// What is known about the step, and about what was clicked.

function facts(pairs) {
  return el("dl", {}, ...pairs.filter(([, value]) => value && value !== "–")
    .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function fold(summary, open, ...inside) { return el("details", { open }, el("summary", {}, summary), ...inside); }

function boxLink(app, box, words) {
  if (box === NONE) return el("span", {}, words);
  return el("button", { type: "button", class: "link-button", onclick: () => app.showBox(box) }, words);
}

// All that was decided about a line of the user's program.
function sourceLink(app, source) {
  return source && el("button", {
    type: "button", class: "link-button", title: "All decisions about this line",
    onclick: () => app.change({ tab: "decisions", source, kind: "", pass: "", rule: "", computation: "", q: "" }),
  }, source);
}

function decisionDetails(app, n) {
  const { run, data } = app, d = run.decisions, rule = data.rules.get(d.rule[n]);
  const unit = (value) => (value === null ? "" : timeText(value));
  const priority = d.kind[n] === "priority";
  return el("article", { class: `decision ${d.kind[n]}` },
    el("p", { class: "kicker" }, `Decision ${numberText(n + 1)} of ${numberText(run.length)} · ${run.passes[d.pass[n]]}, step ${numberText(d.step[n])}`),
    el("h2", {}, el("span", { class: `badge ${d.kind[n]}` }, KIND_WORDS[d.kind[n]]), sentence(run, n)),
    reasonLine(data, run, n) && el("p", { class: "reason" }, reasonLine(data, run, n)),
    facts([
      ["producer", boxLink(app, d.producer[n], run.shown(d.producerName[n]))],
      [priority ? "users" : "consumer", priority
        ? el("span", { class: "many" }, ...d.others[n].map((b) => boxLink(app, b, app.state.shownOf(b))))
        : d.consumerName[n] && boxLink(app, d.consumer[n], run.shown(d.consumerName[n]))],
      ["fused", unit(d.usFused[n])], ["unfused", unit(d.usUnfused[n])], ["saves", unit(d.usSaved[n])],
      ["figures", d.usSaved[n] === null && d.figures[n]], ["XLA's words", d.reason[n] && `“${d.reason[n]}”`],
      ["layer", run.layerOfDecision(n)], ["source", sourceLink(app, run.sourceOfDecision(n))], ["computation", d.computation[n]],
      ["copy kept", d.duplicated[n] ? "yes, for its other users" : ""],
    ]),
    rule && fold(`Rule ${rule.code}: ${rule.title}`, false,
      ...rule.sections.flatMap(([heading, text]) => [el("h3", {}, heading), el("p", {}, text)])));
}

function boxDetails(app, box, chosenOp) {
  const { run, state } = app, { ops } = run;
  const op = chosenOp === NONE && !state.fused[box] && box < ops.count ? box : chosenOp;
  const kernel = run.kernels.find((k) => k.box === run.endsAs[box]);
  const alone = op !== NONE && op < ops.count;
  const inside = state.members[box];
  const name = alone && op !== box ? run.names[op] : state.shownOf(box);
  const now = state.alive[box] ? (state.fused[box] ? `in ${state.shownOf(box)}` : "on its own") : "gone by this step";
  const history = run.historyOf(alone && op !== box ? op : box);
  return el("article", { class: "box" },
    el("h2", {}, name),
    alone && facts([
      ["operation", `${ops.opcode[op]} ${ops.shape[op]}`], ["now", now], ["bytes", bytesText(ops.bytes[op])],
      ["alone", launchedText(ops.us[op])], ["layer", ops.layer[op]],
      ["source", sourceLink(app, ops.source[op])], ["scope", ops.opName[op]],
      ["runs", (ops.calls[op] ?? []).map((c) => run.computations[c]).join(", ")],
    ]),
    kernel && fold(`Kernel ${kernel.name}`, true, facts([
      ["at fusion", kernel.atFusion], ["kind", kernel.kind],
      ["time", kernel.us === null ? "" : `${kernelTime(kernel)}, launch included`], ["runs", timesText(kernel)],
      ["memory", kernel.usMemory === null ? "" : timeText(kernel.usMemory)],
      ["compute", kernel.usCompute === null ? "" : timeText(kernel.usCompute)],
      ["moves", bytesText(kernel.bytes)], ["flops", numberText(kernel.flops)], ["emitter", kernel.emitter],
    ])),
    inside.length > 1 && fold(`Holds ${countText(inside.length, "operation")} at this step`, inside.length < 9,
      el("ul", {}, ...inside.slice(0, 200).map((m) => el("li", {}, el("button", {
        type: "button", class: "link-button", onclick: () => app.showBox(m, m),
      }, `${run.names[m]} `), el("small", {}, ops.opcode[m]))))),
    neighbours(app, "Reads", state.alive[box] ? state.inputs(box) : [], (b) => app.showEdge(b, box)),
    neighbours(app, "Read by", state.alive[box] ? state.outputs(box) : [], (b) => app.showEdge(box, b)),
    historyList(app, history),
    alone && throughPasses(app, op));
}

// Everything that was decided about two boxes, the last of it first.
function edgeDetails(app, from, to) {
  const { run, state, data } = app, d = run.decisions;
  const about = run.historyOf(from).filter((n) => d.producer[n] === from && (d.consumer[n] === to || d.others[n].includes(to)));
  const bytes = state.members[from].filter((m) => run.ops.users[m].some((u) => state.holders[u].has(to)))
    .reduce((sum, m) => sum + run.ops.bytes[m], 0);
  const last = about.at(-1);
  return el("article", { class: "edge-details" },
    el("h2", {}, `${state.shownOf(from)} → ${state.shownOf(to)}`),
    facts([["passes", bytesText(bytes)], ["producer", boxLink(app, from, state.shownOf(from))], ["consumer", boxLink(app, to, state.shownOf(to))]]),
    last === undefined ? el("p", {}, "No pass was asked about these two.")
      : el("p", { class: "reason" }, `${KIND_WORDS[d.kind[last]]}${d.rule[last] && ` (${d.rule[last]})`}: ${reasonLine(data, run, last)}`),
    historyList(app, about));
}

function historyList(app, decisions) {
  const d = app.run.decisions;
  return fold(`History: ${countText(decisions.length, "decision")}`, decisions.length < 12,
    el("ol", { class: "history" }, ...decisions.slice(-200).map((n) => el("li", {}, el("button", {
      type: "button", class: "link-button", onclick: () => app.goTo(n + 1),
    }, el("span", { class: `dot ${d.kind[n]}`, "aria-hidden": "true" }), `${n + 1} ${sentence(app.run, n)}`)))));
}

function neighbours(app, words, boxes, edge) {
  const list = [...boxes];
  if (!list.length) return null;
  return fold(`${words} ${list.length}`, list.length < 5,
    el("ul", {}, ...list.slice(0, 100).map((b) => el("li", {}, boxLink(app, b, app.state.shownOf(b)), " ",
      el("button", { type: "button", class: "small", "aria-label": `The edge to or from ${app.state.shownOf(b)}`, onclick: () => edge(b) }, "edge")))));
}

// First of all: the verdict, then why there are so many kernels.
function welcome(app) {
  const { run, data } = app;
  const count = (kind) => run.decisions.kind.filter((k) => k === kind).length;
  return el("article", {},
    el("h2", {}, "Verdict"),
    ...run.verdict.map((line) => el("p", { class: /^\d\. /.test(line) ? "suggestion" : "" }, line)),
    el("h2", {}, `Why ${countText(run.kernels.length, "kernel")}?`),
    el("p", {}, `XLA was given ${countText(run.kernelsBefore, "kernel")} and took ${countText(run.length, "decision")}: `
      + `${countText(count("fuse"), "time")} it fused two of them, ${countText(count("ineligible"), "time")} it refused.`),
    run.held.length ? el("p", {}, "What keeps the rest apart:") : el("p", {}, "No rule keeps two of the rest apart."),
    el("ul", { class: "why" }, ...refusedByRule(run).map(([code, held]) => el("li", {},
      el("button", { type: "button", class: "link-button", onclick: () => app.change({ tab: "held", rule: code }) }, code),
      el("strong", {}, ` ${countText(held.length, "pair")}, ${worthOf(held)}`),
      el("div", {}, data.rules.get(code)?.title ?? "")))),
    kindsOf(run),
    run.length ? el("p", {}, el("button", { type: "button", class: "link-button", onclick: () => app.goTo(1) }, "Begin with the first decision"),
      " (→ goes on), or choose from the lists.") : null,
    ...run.notes.map((note) => el("p", { class: "note" }, note)));
}

function refusedByRule(run) {
  const found = new Map();
  run.held.forEach((h) => found.set(h.rule, [...(found.get(h.rule) ?? []), h]));
  return [...found];
}

// A producer counts once, and what does not pay not at all, as in `hlofuse explain`.
function worthOf(held) {
  const timed = new Map(held.filter((h) => h.us > 0).map((h) => [h.producer, h.us]));
  const us = [...timed.values()].reduce((sum, t) => sum + t, 0);
  return us > 0 ? `${timeText(us)} if allowed` : bytesText(held.reduce((sum, h) => sum + h.bytes, 0));
}

function kindsOf(run) {
  const found = new Map();
  for (const k of run.kernels) found.set(k.kind, (found.get(k.kind) ?? 0) + 1);
  const told = [...found].sort((a, b) => b[1] - a[1]).map(([kind, n]) => `${numberText(n)} ${kind}`);
  return told.length ? el("p", {}, `The kernels: ${told.join(", ")}.`) : null;
}
