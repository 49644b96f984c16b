// A kernel of the result: its names, its figures, what it reads and writes, its neighbours, its HLO text.

function kernelDetails(app, kernel) {
  const { run } = app;
  return [
    kernelFacts(app, kernel), comparisonDetails(app, kernel),
    fold(`Reads ${countText(kernel.reads.length, "value")}`, kernel.reads.length < 7,
      el("ul", { class: "values" }, ...capped(kernel.reads, 40, (value) => el("li", {}, valueLink(app, value), valueSize(value.shape, value.bytes))))),
    fold(`Writes ${bytesText(kernel.bytesOut)}`, true, el("ul", { class: "values" },
      el("li", {}, valueSize(kernel.shape, kernel.bytesOut)),
      el("li", {}, ...readBy(app, kernel)))),
    notFused(app, kernel),
    hloText(app, kernel),
  ];
}

function addedDetails(app, kernel) {
  return el("article", { class: "box" }, el("h2", {}, kernel.name),
    el("p", { class: "note" }, "Added by a pass after fusion; the picture shows the end of fusion."),
    el("section", { class: "kernel", "aria-label": `Kernel ${kernel.name}` }, ...kernelDetails(app, kernel)));
}

function kernelFacts(app, kernel) {
  const { run } = app, total = run.after.time_us;
  const us = kernel.us === null ? null : totalUs(kernel);
  const each = kernel.iterations > 1 ? `${kernelTime(kernel)} × ${numberText(kernel.iterations)} iterations = ${kernelTime(kernel, us)}` : kernelTime(kernel);
  const share = us === null || !total ? "" : ` (${percentText(us / total)} of the total)`;
  const names = run.namesOf(kernel.box).filter((name) => name !== kernel.atFusion && name !== kernel.name);
  return facts([
    ["final name", kernel.name], ["at the end of fusion", kernel.atFusion], ["earlier names", names.join(", ")],
    ["time", us !== null && `${each}${share}${run.isFused ? "" : ", launch included"}`],
    ["measured", kernel.measured !== null && timeText(kernel.measured)],
    ["lower bound", kernel.usFloor !== null && !kernel.floor && timeText(kernel.usFloor)],
    ["iterations", us === null && kernel.iterations > 1 && numberText(kernel.iterations)],
    ["bound", kernel.bound],
    ["memory", kernel.usMemory && !kernel.floor && timeText(kernel.usMemory)],
    ["compute", kernel.usCompute && !kernel.floor && timeText(kernel.usCompute)],
    ["moved", kernel.bytes > 0 && `${bytesText(kernel.bytes)} (${bytesText(kernel.read)} read, ${bytesText(kernel.written)} written)`],
    ["work", kernel.flops > 0 && flopText(kernel.flops)],
    ["kind", kernel.kind], ["emitter", kernel.emitter], ["layer", kernel.layer],
    ["source", kernel.own && lineLink(app, kernel.place, placeText(kernel.source, kernel.own))],
  ]);
}

function valueSize(shape, bytes) { return el("small", {}, ` ${shape} · ${bytesText(bytes)}`); }

function kernelLink(app, kernel, element = "") {
  return el("button", { type: "button", class: "link-button", onclick: () => app.showKernel(kernel) }, kernel.name + element);
}

function valueLink(app, value) {
  const [, name, element = ""] = /^(.*?)(\{\d+\})?$/.exec(value.name);
  if (value.kernel !== NONE) return kernelLink(app, app.run.kernels[value.kernel], element);
  return boxLink(app, app.run.boxOf(name) ?? NONE, value.name);
}

// Kernels by what they read, the other way round.
function readersOf(run, kernel) {
  run.readers ??= run.kernels.reduce((found, k) => {
    for (const { kernel: read } of k.reads) if (read !== NONE) found.set(read, (found.get(read) ?? new Set()).add(k));
    return found;
  }, new Map());
  return [...run.readers.get(kernel.n) ?? []];
}

function readBy(app, kernel) {
  const readers = readersOf(app.run, kernel).flatMap((k, n) => [n ? ", " : "read by ", kernelLink(app, k)]);
  return kernel.result ? [...readers, readers.length ? "; " : "", "result of the program"] : readers.length ? readers : ["not read by another kernel of its computation"];
}

// Why the kernels on both sides of an edge are two.
function notFused(app, kernel) {
  const { run } = app;
  const producers = [...new Set(kernel.reads.map((v) => v.kernel))].filter((n) => n !== NONE).map((n) => run.kernels[n]);
  const pairs = [...producers.map((k) => [k, k, kernel]), ...readersOf(run, kernel).map((k) => [k, kernel, k])];
  if (!pairs.length || run.isFused) return null;
  return fold("Why not fused with its neighbours", pairs.length < 9, el("ul", { class: "why" },
    ...capped(pairs, 30, ([other, producer, consumer]) => el("li", {},
      el("div", {}, other === producer ? "reads " : "read by ", kernelLink(app, other), " ", producer.box !== NONE && consumer.box !== NONE ? edgeButton(app, producer.box, consumer.box) : ""), whyTwo(app, producer, consumer)))));
}

// The rule that forbids a pair, else the estimate that decided, else that nothing considered it.
function whyTwo(app, producer, consumer) {
  const { run, data } = app, d = run.decisions, atFusion = (k) => k.atFusion || k.name;
  const edge = run.refusedEdges.find((e) => e.producer === atFusion(producer) && e.consumer === atFusion(consumer));
  const about = run.historyOf(producer.box).filter((n) => d.producer[n] === producer.box);
  const decision = edge?.decision ?? about.findLast((n) => d.kind[n] === "ineligible" && d.consumer[n] === consumer.box)
    ?? about.findLast((n) => d.kind[n] === "priority") ?? NONE;
  if (decision === NONE && !edge) return el("div", {}, "No fusion pass considered this pair.");
  const rule = data.rules.get(edge?.rule ?? d.rule[decision]);
  const text = rule ? `${rule.title}${edge ? ` (${atStake(edge)})` : ""}` : sentence(run, decision);
  const open = () => (decision === NONE ? app.change({ tab: "refused", rule: rule.code }) : app.goTo(decision + 1));
  return el("div", {}, el("button", { type: "button", class: "link-button", onclick: open }, rule?.code ?? `decision ${numberText(decision + 1)}`), ` ${text}`);
}

// What an allowed pair would gain.
function atStake(edge) {
  if (edge.us === null) return `${bytesText(edge.bytes)} written and read back`;
  return edge.us < 0 ? `fusing would cost ${timeText(-edge.us)}` : `fusing would save ${timeText(edge.us)}`;
}

function hloText(app, kernel) {
  const text = el("pre", { class: "hlo", tabindex: 0, "aria-label": `HLO of ${kernel.name}` }, "…");
  const copy = el("button", { type: "button", class: "small", onclick: () => copied(text, copy) }, "Copy");
  const found = fold("HLO text", false, el("p", { class: "note" }, "From the final module, without metadata. ", copy), text);
  found.addEventListener("toggle", async () => {
    text.textContent = (await app.data.texts()).kernels[Number(app.view.run)][kernel.n];
  }, { once: true });
  return found;
}

// A page from disk may not be allowed to write to the clipboard: then the text is selected.
async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(text);
    button.textContent = "Selected";
  }
}
