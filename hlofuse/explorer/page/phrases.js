// Sentences and figures, in the words of the reports.

const KIND_TEXTS = { fuse: "fused", ineligible: "refused", priority: "estimated", rewrite: "rewritten" };

function timeText(us) {
  if (us === null || us === undefined) return "–";
  if (Math.abs(us) < 0.005) return us === 0 ? "0 µs" : "<0.01 µs";
  let size = Math.abs(us), unit = "µs";
  for (const larger of ["ms", "s"]) if (size >= 999.5) { size /= 1000; unit = larger; }
  const whole = unit === "µs" ? 999.5 : 99.95;
  const digits = size < whole / 10 ? 2 : size < whole ? 1 : 0;
  return `${us < 0 ? "−" : ""}${digits ? size.toFixed(digits) : numberText(Math.round(size))} ${unit}`;
}

// `≥` marks a lower bound: XLA has no estimate, or one below what any device can reach.
const kernelTime = (kernel, us = kernel.us) => (us === null ? "" : `${!kernel.floor ? "" : us && us < 0.005 ? "> " : "≥ "}${kernel.floor && us && us < 0.005 ? "0 µs" : timeText(us)}`);

const launchedText = (figures) => (figures && figures.us !== null ? `${kernelTime(figures)}, launch included` : "");

function quantityText(value, unit) {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let n = 0;
  while (value >= 999.5 && n < prefixes.length - 1) { value /= 1000; n++; }
  return `${n === 0 ? Number(value.toPrecision(3)) : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${prefixes[n]}${unit}`;
}

function bytesText(bytes) { return quantityText(bytes, "B"); }

function flopText(flops) { return quantityText(flops, "FLOP"); }

function numberText(n) { return n.toLocaleString("en"); }

function countText(n, one, many = `${one}s`) { return `${numberText(n)} ${n === 1 ? one : many}`; }

function percentText(part) { return `${(100 * part).toFixed(0)}%`; }

// `−1.01 µs (−14%)`, as in reports; `±0` for no difference.
function differenceText(before, after, text) {
  const change = after - before;
  if (Math.abs(change) < 0.005 || text(before) === text(after)) return "±0";
  const sign = change < 0 ? "−" : "+";
  return `${sign}${text(Math.abs(change))}${before ? ` (${sign}${percentText(Math.abs(change) / before)})` : ""}`;
}

// In a narrow column: the part, or the difference of small numbers.
function differencePart(before, after, text) {
  const whole = differenceText(before, after, text);
  return text === numberText || Math.abs(after) > 10 * Math.abs(before) ? whole.replace(/ \(.*/, "") : /\((.*)\)$/.exec(whole)?.[1] ?? whole;
}

// A long list ends in the words of every report, but the page can show the rest.
function capped(items, most, item) {
  const shown = items.slice(0, most).map(item);
  if (items.length > most) {
    const more = el("li", {}, el("button", {
      type: "button", class: "link-button", onclick: () => more.replaceWith(...items.slice(most).map(item)),
    }, `… ${numberText(items.length - most)} more`));
    shown.push(more);
  }
  return shown;
}

// How often the loops around a kernel run it.
function iterationsText(kernel) { return kernel.iterations > 1 ? `× ${numberText(kernel.iterations)}` : ""; }

// A kernel or an operation as a kernel of its own: time, else bytes.
function costText(figures) {
  if (!figures) return "";
  const cost = figures.us !== null ? kernelTime(figures) : figures.bytes ? bytesText(figures.bytes) : ""; // no bytes: XLA does not know
  return [cost, cost && iterationsText(figures)].filter(Boolean).join(" ");
}

// Time of all iterations.
const measuredUs = (kernel) => (kernel.measured ?? 0) * kernel.iterations;
const totalBytes = (figures) => figures.bytes * figures.iterations;
function totalUs(figures) { return (figures?.us ?? 0) * (figures?.iterations ?? 1); }

// The quantities of a module: name, value and text, the same for every module.
function quantities(totals) {
  const floor = totals.floors ? "≥ " : "";
  const rows = [["kernels", totals.kernels, numberText], ["launches", totals.launches, numberText]];
  if (totals.time_us !== null) rows.push(["time est.", totals.time_us, timeText, floor]);
  rows.push(["moved", totals.bytes, bytesText], ["work", totals.flop, flopText]);
  if (totals.peak_temporary_bytes !== null) rows.push(["temporary", totals.peak_temporary_bytes, bytesText]);
  return rows.filter(([name, value]) => name !== "launches" || value !== totals.kernels);
}

// The first line of figures: before fusion → after.
function totalsLine(run) {
  const others = new Map(quantities(run.after).map((row) => [row[0], row])), isShared = (row) => others.has(row[0]);
  return quantities(run.before).filter(isShared).map(([name, value, text, floor = ""]) => {
    const [, after, , floor2 = ""] = others.get(name), pair = run.isFused ? `${floor}${text(value)}` : `${floor}${text(value)} → ${floor2}${text(after)}`;
    const kernels = `${countText(value, "kernel")}${run.isFused ? "" : ` → ${numberText(after)}`}`;
    return { kernels, launches: `${pair} launches`, moved: `${pair} moved`, work: pair, temporary: `${pair} temporary` }[name] ?? `est. ${pair}`;
  });
}

// A module in one line; against another with the difference.
function sideText(label, totals, other) {
  const timed = totals.time_us !== null, [key, text] = timed ? ["time_us", timeText] : ["bytes", bytesText];
  const change = other && other[key] !== totals[key] ? ` (${differencePart(other[key], totals[key], text)})` : "";
  return `${label}: ${countText(totals.kernels, "kernel")}, ${timed && totals.floors ? "≥ " : ""}${text(totals[key])}${timed ? "" : " moved"}${change}`;
}

// Two modules side by side, with the differences.
function totalsTable(labels, one, other) {
  const rows = quantities(one), others = new Map(quantities(other).map((row) => [row[0], row]));
  return el("table", { class: "totals" },
    el("thead", {}, el("tr", {}, ...["", ...labels, "change"].map((label) => el("th", { scope: "col", title: label }, label)))),
    el("tbody", {}, ...rows.filter(([name]) => others.has(name)).map(([name, value, text, floor = ""]) => {
      const [, value2, , floor2 = ""] = others.get(name);
      return el("tr", { "data-quantity": name }, el("th", { scope: "row" }, name), el("td", {}, floor + text(value)),
        el("td", {}, floor2 + text(value2)), el("td", { class: "difference", title: differenceText(value, value2, text) }, differencePart(value, value2, text)));
    })));
}

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
      const users = d.others[n].length === 1 ? "user" : countText(d.others[n].length, "user");
      return worth > 0
        ? `Fusing ${producer} into its ${users} would save ${timeText(worth)}`
        : `Fusing ${producer} into its ${users} would not save time`;
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
  const suffix = Math.floor(width / 3);
  return `${name.slice(0, width - suffix - 1)}…${name.slice(-suffix)}`;
}

// `flax/linen/linear.py:700 _Conv.__call__, from model.py:12`.
function placeText(source, own) { return [source, own !== source && `from ${own}`].filter(Boolean).join(", "); }

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
