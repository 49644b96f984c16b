// The whole module in one picture, collapsed: by computation, by source scope, by fusion.

const MOST_GROUPS = 90, ROW_OF_PARTS = 1000;

function scopeAt(opName, depth) { return opName.split("/").slice(0, -1).slice(0, depth).join("/"); }

// Without what all scopes begin with: `jit(f)/`.
function shortScope(run, scope) {
  if (run.sharedScope === undefined) {
    const paths = run.ops.opName.filter((name) => name.includes("/"));
    const first = paths[0]?.slice(0, paths[0].indexOf("/") + 1) ?? "";
    run.sharedScope = paths.every((name) => name.startsWith(first)) ? first : "";
  }
  return scope.startsWith(run.sharedScope) ? scope.slice(run.sharedScope.length) : scope;
}

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
    const words = regionText(run, first);
    return `${bunch === 1 ? first + 1 : `${first + 1}–${Math.min(first + bunch, run.regions.length)}`}${words && ` · ${words}`}`;
  };
}

// The layer, else the source line, else the scope, that most of a region comes from.
function regionText(run, number) {
  const region = run.regions[number];
  if (region.words === undefined) {
    const counts = new Map();
    for (const { inside } of region.kernels)
      for (const op of inside) {
        const words = run.ops.layer[op] || run.ops.source[op] || shortScope(run, scopeAt(run.ops.opName[op], 8));
        if (words) counts.set(words, (counts.get(words) ?? 0) + 1);
      }
    region.words = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
  }
  return region.words;
}

function groupsOf(run, state, view) {
  const key = grouping(run, state, view), groups = new Map(), keyOfBox = new Map();
  // Backwards: a kernel counts where its last operation belongs.
  for (let op = run.ops.count - 1; op >= 0; op--) {
    if (run.ops.opcode[op] === "constant") continue;
    for (const box of state.holders[op]) {
      if (!state.alive[box]) continue;
      const name = key(op, box);
      if (name === null) continue;
      if (!groups.has(name)) groups.set(name, { name, sum: 0, boxes: new Set(), before: 0, ops: 0, region: run.regionOfBox(box) });
      const group = groups.get(name);
      group.ops++;
      group.sum += op;
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
  return { groups: [...groups.values()].sort((a, b) => a.sum / a.ops - b.sum / b.ops), keyOfBox };
}

// A computation leads to those it runs.
function calls(run, index, between, count) {
  for (const [op, called] of Object.entries(run.ops.calls)) {
    const a = index.get(run.computations[run.ops.computation[op]]);
    for (const c of called) {
      const b = index.get(run.computations[c]);
      if (a !== undefined && b !== undefined) between.set(a * count + b, undefined);
    }
  }
}

// What a box reads, seen through what is not drawn: views, tuples, constants.
function inputsThrough(state, box, keyOfBox) {
  const found = new Set(), stack = [...state.inputs(box)], seen = new Set(stack);
  while (stack.length) {
    const input = stack.pop();
    if (keyOfBox.has(input)) { found.add(input); continue; }
    for (const next of state.inputs(input)) if (!seen.has(next)) { seen.add(next); stack.push(next); }
  }
  return found;
}

// Pairs of groups, as one number each, to the refusal that keeps them apart, if there is one.
function edgesBetween(run, state, view, groups, keyOfBox) {
  const index = new Map(groups.map((g, n) => [g.name, n]));
  const refused = refusedPairs(run, state.at), between = new Map();
  for (const [box, name] of keyOfBox) {
    const b = index.get(name);
    for (const input of inputsThrough(state, box, keyOfBox)) {
      const a = index.get(keyOfBox.get(input));
      if (a === undefined || a === b) continue;
      const key = a * groups.length + b, decision = refused.get(input * run.boxes + box);
      between.set(key, decision ?? between.get(key));
    }
  }
  if (view === "computation") calls(run, index, between, groups.length);
  return between;
}

function drawOverview(run, state, view, decision, act, room) {
  const { groups, keyOfBox } = groupsOf(run, state, view);
  const single = view === "fusion" && groups.every((g) => g.boxes.size < 2);
  const inParts = view === "fusion" && !single;
  const between = inParts ? new Map() : edgesBetween(run, state, view, groups, keyOfBox);
  for (const g of groups) g.label = view === "scope" ? shortScope(run, g.name) : single ? run.shown(g.name) : g.name;
  const nodes = groups.map((g) => ({
    width: Math.max(168, Math.min(320, 24 + 6.9 * Math.min(g.label.length, 40))), height: 46, group: g,
  }));
  measureKernels(run, state, nodes, single);
  const edges = [...between.keys()].map((k) => [Math.floor(k / groups.length), k % groups.length]);
  const size = inParts ? inRows(nodes, room) : layered(nodes, edges, { gapX: 18, gapY: 34, widest: 1150 });
  const most = greatest(1, groups.map((g) => Math.max(g.before, g.boxes.size)));
  const marks = [];
  const lines = edges.map(([a, b], n) => {
    const decision = between.get(a * groups.length + b);
    const route = size.routes[n], d = route ? along(route) : curve(nodes[a], nodes[b]);
    if (decision === undefined || !single) return svg("path", { d, class: "edge" });
    if (groups.length <= 40) marks.push(ruleMark(run, decision, nodes[a], nodes[b], act, route && markOn(route)));
    return svg("path", { d, class: "edge refused" });
  });
  const d = run.decisions;
  const inQuestion = new Set(decision === NONE ? [] : [d.producer[decision], d.consumer[decision]].map((b) => keyOfBox.get(b)));
  const drawn = nodes.map((n) => groupNode(run, n, most, state.at, inQuestion.has(n.group.name) ? d.kind[decision] : "", act));
  return { group: svg("g", { class: "overview" }, ...lines, ...drawn, ...marks), width: size.width, height: size.height };
}

// Parts follow each other; edges between them would hide that.
function inRows(nodes, room) {
  nodes.sort((a, b) => a.group.region - b.group.region);
  const width = greatest(0, nodes.map((n) => n.width)), widest = Math.min(ROW_OF_PARTS, room / READABLE_SHEET - 20) || ROW_OF_PARTS;
  const columns = Math.max(1, Math.floor((widest + 18) / (width + 18)));
  nodes.forEach((n, k) => {
    n.x = (k % columns) * (width + 18);
    n.y = Math.floor(k / columns) * 62;
    n.width = width;
  });
  return { width: columns * (width + 18) - 18, height: Math.ceil(nodes.length / columns) * 62 - 16 };
}

// What a box costs at this step. Of a fusion that later decisions change nothing is estimated.
function measureKernels(run, state, nodes, single) {
  const { timed } = run;
  for (const n of nodes) {
    const figures = [...n.group.boxes].map((box) => run.figures(state, box));
    n.single = single;
    n.kernel = single ? figures[0] : undefined;
    n.us = timed && !single && figures.every(Boolean) ? figures.reduce((sum, f) => sum + totalUs(f), 0) : 0;
  }
  for (const n of nodes) n.share = costOf(run, n.kernel) / run.most;
}

function groupNode(run, n, most, step, kind, act) {
  const g = n.group, now = g.boxes.size;
  const count = step ? `${countText(g.before, "kernel")} → ${now}` : countText(now, "kernel");
  const words = n.single
    ? [countText(g.ops, "operation"), costText(n.kernel)].filter(Boolean).join(" · ") : `${count}${n.us ? ` · ${timeText(n.us)}` : ""}`;
  const bar = (count, y, name) =>
    svg("rect", { class: name, x: 10, y, width: Math.max(1, ((n.width - 20) * count) / most), height: 3, rx: 1.5 });
  const bars = n.single ? [n.kernel && bar(n.share * most, 38, "is")] : [bar(g.before, 36, "was"), bar(now, 40, "is")];
  const press = (event) => {
    if (!presses(event)) return;
    act.group(g);
  };
  return svg("g", {
    class: `group ${kind}`, "data-box": n.single ? [...g.boxes][0] : null, tabindex: 0, role: "button", "aria-label": `${n.single ? g.label : g.name}: ${words}`,
    transform: `translate(${n.x} ${n.y})`, onclick: press, onkeydown: press,
  },
  svg("title", {}, `${n.single ? g.label : g.name}\n${words}`),
  svg("rect", { class: "frame", width: n.width, height: n.height, rx: 6 }),
  svg("text", { x: 10, y: 16, class: "name" }, shortName(g.label, 40)),
  svg("text", { x: 10, y: 30, class: "words" }, words),
  ...bars);
}
