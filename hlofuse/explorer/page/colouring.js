// What the colours of boxes stand for. A class of the style sheet is one colour: boxes, the outlines of kernels and
// the legend all have theirs from there.

const COLOURINGS = [["kind", "Kind"], ["kernel", "Kernel"], ["time", "Time"], ["bytes", "Bytes"], ["rule", "Rule"], ["measured", "Measured"]];
const HEATS = 5, TINTS = 10, MOST_RULES = 6;
const KIND_LEGEND = [
  ["element", "elementwise, loop fusion"], ["move", "moves data"], ["reduce", "reduces, input fusion"], ["custom", "Triton, library or custom fusion"],
  ["matmul", "matmul, convolution, library"], ["source", "parameter, constant"], ["control", "loop, call, collective"],
];
const FUSION_COLOURS = { kLoop: "element", kInput: "reduce", kOutput: "matmul", kCustom: "custom" };

function colouringsOf(run) {
  return COLOURINGS.filter(([key]) => key !== "measured" || run.kernels.some((k) => k.measured !== null));
}

// `box(box, op)` gives the class of an operation (NONE: of the kernel that the box ends in), `group(kernels)` that of
// several; `legend` lists all classes with their meaning.
function colouring(run, mode) {
  run.colourings ??= {};
  return run.colourings[mode] ??= mode === "kind" ? byKind(run) : mode === "kernel" ? byKernel(run) : mode === "rule" ? byRule(run) : byFigure(run, mode);
}

function byKind(run) {
  const ofKernel = (kernel) => FUSION_COLOURS[kernel.kind] ?? categoryOf(kernel.kind);
  return {
    box: (box, op) => {
      if (op !== NONE && run.ops.opcode[op] !== "fusion") return categoryOf(run.ops.opcode[op]);
      const kernel = kernelOf(run, run.endsAs[box]);
      return kernel ? ofKernel(kernel) : box < run.ops.count ? categoryOf(run.ops.opcode[box]) : "element";
    },
    group: () => "plain", legend: KIND_LEGEND,
  };
}

// Kernels that run one after the other have different colours.
function byKernel(run) {
  const tint = (kernel) => (kernel ? `tint${kernel.n % TINTS}` : "unknown");
  return {
    box: (box) => tint(run.kernelOfBox(box)), group: () => "plain",
    legend: [["tint0", "a colour for each kernel"], ["unknown", "no kernel"]],
  };
}

function byFigure(run, mode) {
  const figure = (k) => ({ time: k.us, bytes: k.bytes, measured: k.measured })[mode] * k.iterations;
  const text = (value) => (mode === "bytes" ? bytesText(value) : timeText(value));
  const all = run.kernels.map(figure).filter((v) => v > 0);
  const most = greatest(0, all), least = -greatest(-Infinity, all.map((v) => -v));
  // Equal factors from one colour to the next: kernels differ by orders of magnitude.
  const step = all.length && most > least ? Math.log(most / least) / HEATS : 0;
  const heat = (value) => (!(value > 0) ? "unknown" : step ? `heat${Math.max(0, Math.min(HEATS - 1, Math.floor(Math.log(value / least) / step + 1e-9)))}` : "heat2");
  const edge = (n) => text(least * Math.exp(n * step));
  const bins = step ? Array.from({ length: HEATS }, (_, n) => [`heat${n}`, n === HEATS - 1 ? `from ${edge(n)}` : `${edge(n)} – ${edge(n + 1)}`]) : [["heat2", all.length ? text(most) : ""]];
  return {
    box: (box) => { const kernel = kernelOf(run, run.endsAs[box]); return kernel ? heat(figure(kernel)) : "unknown"; },
    group: (kernels) => heat(kernels.reduce((sum, k) => sum + (figure(k) || 0), 0)),
    legend: [...bins, ["unknown", mode === "bytes" ? "moves none, or not known" : "no estimate"]],
  };
}

// The rule that keeps a kernel out of what reads it, the one with most at stake first.
function byRule(run) {
  const ruleOf = new Map(), pairs = new Map();
  for (const { producer, rule } of run.refusedEdges) {
    const box = run.boxNamed.get(producer);
    if (box !== undefined && !ruleOf.has(box)) ruleOf.set(box, rule);
    pairs.set(rule, (pairs.get(rule) ?? 0) + 1);
  }
  const rules = [...pairs].sort((a, b) => b[1] - a[1]).map(([rule]) => rule);
  const named = (rule) => { const n = rules.indexOf(rule); return n < 0 ? "unknown" : n < MOST_RULES ? `tint${n}` : "rule-other"; };
  const words = rules.slice(0, MOST_RULES).map((rule, n) => [`tint${n}`, `${rule}: ${countText(pairs.get(rule), "pair")}`]);
  return {
    box: (box) => named(ruleOf.get(run.endsAs[box])),
    group: (kernels) => {
      const counts = new Map();
      for (const k of kernels) { const rule = ruleOf.get(k.box); if (rule) counts.set(rule, (counts.get(rule) ?? 0) + 1); }
      return named([...counts].sort((a, b) => b[1] - a[1])[0]?.[0]);
    },
    legend: [...words, ["rule-other", "another rule"], ["unknown", "no refused reader"]],
  };
}
