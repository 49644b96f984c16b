// The whole module on one sheet, collapsed: by computation, by source scope, by fusion.

const MOST_GROUPS = 90;

function scopeAt(opName, depth) { return opName.split("/").slice(0, -1).slice(0, depth).join("/"); }

// Keys that put operations into groups, few enough to be looked at.
function grouping(run, state, view) {
  const { ops } = run;
  if (view === "computation") return (op) => run.computations[ops.computation[op]];
  if (view === "scope") {
    for (let depth = 8; depth > 1; depth--) {
      const keys = new Set(ops.opName.map((name) => scopeAt(name, depth)));
      if (keys.size <= MOST_GROUPS) return (op) => scopeAt(ops.opName[op], depth) || "(no scope)";
    }
    const top = (op) => scopeAt(ops.opName[op], 1) || "(no scope)";
    return new Set(ops.opName.map((name) => scopeAt(name, 1))).size <= MOST_GROUPS ? top : parts(run);
  }
  let kernels = 0;
  for (let b = 0; b < run.boxes; b++) if (state.isKernel(b)) kernels++;
  if (kernels > MOST_GROUPS) return parts(run);
  return (op, box) => (state.isKernel(box) ? state.nameOf(box) : null);
}

function parts(run) {
  const bunch = Math.ceil(run.regions.length / MOST_GROUPS);
  return (op, box) => {
    const region = run.regionOfBox(box);
    if (region === undefined) return null;
    const first = Math.floor(region / bunch) * bunch;
    return bunch === 1 ? `part ${first + 1}` : `parts ${first + 1}–${Math.min(first + bunch, run.regions.length)}`;
  };
}

function groupsOf(run, state, view) {
  const key = grouping(run, state, view), groups = new Map(), keyOfBox = new Map();
  for (let op = 0; op < run.ops.count; op++) {
    if (run.ops.opcode[op] === "constant") continue;
    for (const box of state.holders[op]) {
      if (!state.alive[box]) continue;
      const name = key(op, box);
      if (name === null) continue;
      if (!groups.has(name)) groups.set(name, { name, first: op, boxes: new Set(), before: 0, ops: 0, region: run.regionOfBox(box) });
      const group = groups.get(name);
      group.ops++;
      if (!keyOfBox.has(box)) keyOfBox.set(box, name);
      if (keyOfBox.get(box) === name && state.isKernel(box)) {
        group.boxes.add(box);
        if (!group.lead) { group.lead = true; group.region = run.regionOfBox(box); }
      }
    }
    if (run.ops.launched[op]) {
      const name = key(op, op);
      if (name !== null && groups.has(name)) groups.get(name).before++;
    }
  }
  return { groups: [...groups.values()].sort((a, b) => a.first - b.first), keyOfBox };
}

function drawOverview(run, state, view, act) {
  const { groups, keyOfBox } = groupsOf(run, state, view);
  const index = new Map(groups.map((g, n) => [g.name, n]));
  const bytes = new Map();
  for (const [box, name] of keyOfBox) {
    const b = index.get(name);
    for (const input of state.inputs(box)) {
      const a = index.get(keyOfBox.get(input));
      if (a === undefined || a === b) continue;
      bytes.set(a * groups.length + b, (bytes.get(a * groups.length + b) ?? 0) + 1);
    }
  }
  const nodes = groups.map((g) => ({
    width: Math.max(120, Math.min(320, 24 + 6.6 * Math.min(g.name.length, 44))), height: 46, group: g,
  }));
  const edges = [...bytes.keys()].map((k) => [Math.floor(k / groups.length), k % groups.length]);
  const size = layered(nodes, edges, { gapX: 18, gapY: 30, widest: 1700 });
  const most = Math.max(1, ...groups.map((g) => Math.max(g.before, g.boxes.size)));
  const lines = edges.map(([a, b]) => svg("path", { d: curve(nodes[a], nodes[b]), class: "edge" }));
  const drawn = nodes.map((n) => groupNode(n, view, most, act));
  return { group: svg("g", { class: "overview" }, ...lines, ...drawn), width: size.width, height: size.height };
}

function groupNode(n, view, most, act) {
  const g = n.group, now = g.boxes.size;
  const words = view === "fusion" && !g.name.startsWith("part")
    ? countText(g.ops, "operation") : `${countText(g.before, "kernel")} → ${now}`;
  const bar = (count, y, name) =>
    svg("rect", { class: name, x: 10, y, width: Math.max(1, ((n.width - 20) * count) / most), height: 3, rx: 1.5 });
  const press = (event) => {
    if (event.type === "keydown" && event.key !== "Enter") return;
    act.group(g);
  };
  return svg("g", {
    class: "group", tabindex: 0, role: "button", "aria-label": `${g.name}: ${words}`,
    transform: `translate(${n.x} ${n.y})`, onclick: press, onkeydown: press,
  },
  svg("title", {}, `${g.name}\n${words}`),
  svg("rect", { class: "frame", width: n.width, height: n.height, rx: 6 }),
  svg("text", { x: 10, y: 16, class: "name" }, shortName(g.name, 44)),
  svg("text", { x: 10, y: 30, class: "words" }, words),
  bar(g.before, 36, "was"), bar(now, 40, "is"));
}
