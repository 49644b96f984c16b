// Sentences and figures.

const KIND_WORDS = { fuse: "fused", ineligible: "refused", priority: "estimated", rewrite: "rewritten" };

function timeText(us) {
  if (us === null || us === undefined) return "–";
  const size = Math.abs(us), sign = us < 0 ? "−" : "";
  if (size >= 999950) return `${sign}${(size / 1e6).toFixed(size < 9995000 ? 2 : 1)} s`;
  if (size >= 9999.5) return `${sign}${(size / 1000).toFixed(1)} ms`;
  return `${sign}${size.toFixed(size >= 999.5 ? 0 : size >= 99.95 ? 1 : 2)} µs`;
}

// A lower bound where XLA has no estimate, or one that no machine reaches.
const kernelTime = (kernel, us = kernel.us) => (us === null ? "" : `${kernel.floor ? "≥ " : ""}${timeText(us)}`);

const launchedText = (us) => (us === null ? "" : `${timeText(us)}, launch included`);

function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes, n = 0;
  while (value >= 999.5 && n < units.length - 1) { value /= 1000; n++; }
  return `${n === 0 ? value : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${units[n]}`;
}

function numberText(n) { return n.toLocaleString("en"); }

function countText(n, one, many = `${one}s`) { return `${numberText(n)} ${n === 1 ? one : many}`; }

// How often the loops around a kernel run it.
function timesText(kernel) { return kernel.turns > 1 ? countText(kernel.turns, "time") : ""; }

// What a decision says, without its reason; `brief` leaves the names at fusion out where others are final.
function sentence(run, n, brief = false) {
  const d = run.decisions;
  const [producer, consumer, result] = [d.producerName[n], d.consumerName[n], d.resultName[n]].map((name) => (brief ? run.finalOf(name) : run.shown(name)));
  switch (d.kind[n]) {
    case "fuse":
      return `${producer} fused into ${consumer}${result && result !== consumer ? `, now ${result}` : ""}`;
    case "ineligible": return consumer ? `${producer} not fused into ${consumer}` : `${producer} not fused`;
    case "priority": {
      const worth = d.usUnfused[n] - d.usFused[n];
      const users = countText(d.others[n].length, "user");
      return worth > 0
        ? `Fusing ${producer} into its ${users} would save ${timeText(worth)}`
        : `Fusing ${producer} into its ${users} would not pay`;
    }
    default: return result ? `${producer} became ${result}` : `${producer} removed`;
  }
}

// Why, in a line: the user's terms first, then XLA's.
function reasonLine(data, run, n) {
  const d = run.decisions;
  if (d.why[n]) return d.why[n];
  const rule = data.rules.get(d.rule[n]);
  return rule ? rule.title : d.reason[n];
}

function shortName(name, width = 26) {
  if (name.length <= width) return name;
  const tail = Math.floor(width / 3);
  return `${name.slice(0, width - tail - 1)}…${name.slice(-tail)}`;
}

const CATEGORIES = [
  ["source", /^(parameter|constant|iota|partition-id|replica-id|rng.*)$/],
  ["reduce", /^(reduce|reduce-window|select-and-scatter|sort|scatter|cumulative.*|map)$/],
  ["matmul", /^(dot|convolution|custom-call|cholesky|triangular-solve|fft|ragged-dot|scaled-dot)$/],
  ["move", /^(broadcast|reshape|transpose|slice|concatenate|pad|gather|copy|reverse|dynamic-.*|bitcast.*|tuple|get-tuple-element|copy-.*)$/],
  ["control", /^(while|conditional|call|all-.*|collective-.*|send.*|recv.*|async-.*|reduce-scatter|after-all|infeed|outfeed)$/],
  ["fusion", /^fusion$/],
];

function categoryOf(opcode) {
  const found = CATEGORIES.find(([, pattern]) => pattern.test(opcode));
  return found ? found[0] : "element";
}
