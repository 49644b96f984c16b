// The whole module as boxes within boxes: kernels in the loops that run them, in the program's own scopes, in
// computations. What is large starts folded; a fold opens in its place.

const MOST_CHILDREN = 48, MOST_PARTS = 24, OPEN_AT_FIRST = { fusion: 30, computation: 24, scope: 16 };

// The functions of the program that an operation is in and the scopes around it, outermost first.
function scopeOf(run, op) {
  run.scopes ??= [];
  if (run.scopes[op]) return run.scopes[op];
  const parts = run.ops.path[op].split("/").filter(Boolean), outside = callersOfProgram(run);
  while (parts.length > 1 && outside.has(parts[0])) parts.shift();
  const caller = callersOf(run)[run.ops.computation[op]];
  if (caller === undefined || run.ops.opcode[caller] !== "while") return run.scopes[op] = parts;
  // A loop stands in the function that runs it.
  const around = loopScope(run, caller), shared = parts.findIndex((part, n) => part !== around[n]);
  return run.scopes[op] = [...around, ...(shared < 0 ? [] : parts.slice(Math.min(shared, around.length - 1)))];
}

function loopScope(run, caller) { return [...scopeOf(run, caller), "loop"]; }

// The functions that lead to the compiled one, whose name JAX writes first.
function callersOfProgram(run) {
  if (run.outside) return run.outside;
  run.outside = new Set();
  run.ops.path.forEach((path, op) => {
    const parts = path.split("/"), name = /^p?jit\(([^()]+)\)/.exec(run.ops.opName[op])?.[1];
    parts.slice(0, Math.max(0, parts.indexOf(name))).forEach((part) => run.outside.add(part));
  });
  return run.outside;
}

// The layer, else the source line, else the scope, that most of a region comes from.
function regionText(run, number) {
  const region = run.regions[number];
  if (region.words === undefined) {
    const counts = new Map();
    for (const { inside } of region.kernels)
      for (const op of inside) {
        const words = run.ops.layer[op] || run.ops.own[op] || scopeOf(run, op).join("/");
        if (words) counts.set(words, (counts.get(words) ?? 0) + 1);
      }
    region.words = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
  }
  return region.words;
}

// Of each computation the operation that runs it; undefined of the entry.
function callersOf(run) {
  if (!run.callers) {
    run.callers = [];
    for (const [op, called] of Object.entries(run.ops.calls)) for (const c of called) run.callers[c] ??= Number(op);
    run.iterationsOf = [];
    for (const k of run.kernels)
      if (k.box >= 0 && k.box < run.ops.count && k.iterations) run.iterationsOf[run.ops.computation[k.box]] = k.iterations;
  }
  return run.callers;
}

// How often a computation is run in all.
function timesOf(run, computation) {
  const caller = callersOf(run)[computation];
  return run.iterationsOf[computation] ?? (caller === undefined ? 1 : timesOf(run, run.ops.computation[caller]));
}

function tripsText(run, computation) {
  const caller = callersOf(run)[computation];
  return caller === undefined || run.ops.opcode[caller] !== "while" ? "" : ratioText(timesOf(run, computation), timesOf(run, run.ops.computation[caller]));
}

function ratioText(times, around) { return times > around ? `× ${numberText(Math.round(times / around))}` : ""; }

// Of a box its last operation. The list of its members is another one
// whenever they change.
function contentOf(run, state, box) {
  const members = state.members[box], contents = run.contents ??= [];
  if (contents[box]?.members !== members)
    contents[box] = { members, last: greatest(NONE, members) };
  return contents[box];
}

class Outline {
  constructor(run, state, view) {
    Object.assign(this, { run, state, view });
    this.nodes = new Map();  // containers by id
    this.rounds = 0;
    this.leafOf = new Map();  // of each box that is drawn
    this.root = this.group(null, "", "", "root");
    const boxes = [];
    for (let b = 0; b < run.boxes; b++) if (state.isKernel(b) && state.members[b].length + (b >= run.ops.count)) boxes.push(b);
    callersOf(run);
    for (const box of boxes) {
      const { last } = contentOf(run, state, box), leaf = { id: `box ${box}`, kind: "kernel", box, order: last, scope: last === NONE ? [] : scopeOf(run, last) };
      this.leafOf.set(box, leaf);
      this.add(view === "scope" || last === NONE ? this.root : this.ofComputation(run.ops.computation[last]), leaf);
    }
    for (const node of [...this.nodes.values()]) if (view === "scope" || node.children.length > MOST_CHILDREN) this.byScope(node);
    for (const node of [...this.nodes.values()]) this.byPart(node);
    this.sum(this.root);
    this.standFor();
  }

  group(parent, id, label, kind, more = {}) {
    if (!this.nodes.has(id)) {
      const node = { id, label, kind, children: [], order: Infinity, scope: [], ...more };
      this.nodes.set(id, node);
      if (parent) this.add(parent, node);
    }
    return this.nodes.get(id);
  }

  add(parent, node) {
    node.owner = parent;
    parent.children.push(node);
  }

  // The container of a computation's kernels.
  ofComputation(c) {
    const { run } = this, caller = run.callers[c];
    if (this.view === "computation") return this.group(this.root, `computation ${c}`, run.computations[c], "computation", { trips: tripsText(run, c), computation: c });
    if (caller === undefined) return this.root;
    const opcode = run.ops.opcode[caller], scope = scopeOf(run, caller);
    const own = this.group(this.ofComputation(run.ops.computation[caller]), `loop ${caller}`, run.names[caller], opcode, { caller, scope, trips: tripsText(run, c) });
    if (!own.trips) own.trips = tripsText(run, c);
    return opcode === "conditional" ? this.group(own, `computation ${c}`, `branch ${run.ops.calls[caller].indexOf(c)}: ${run.computations[c]}`, "branch", { computation: c }) : own;
  }

  // Puts what a container holds into the scopes of the program, those with one member left out.
  byScope(container) {
    const tree = (name) => ({ name, subs: new Map(), items: [] }), root = tree("");
    for (const child of container.children) {
      let at = root;
      for (const part of child.scope) {
        if (!at.subs.has(part)) at.subs.set(part, tree(part));
        at = at.subs.get(part);
      }
      at.items.push(child);
    }
    const count = (at) => at.total ??= at.items.length + [...at.subs.values()].reduce((sum, sub) => sum + count(sub), 0);
    container.children = [];
    const place = (at, parent, path) => {
      at.items.forEach((item) => this.add(parent, item));
      for (const sub of at.subs.values()) {
        let name = sub.name, end = sub;
        while (!end.items.length && end.subs.size === 1) { [end] = end.subs.values(); name += `/${end.name}`; }
        const whole = path ? `${path}/${name}` : name;
        if (count(end) < 2) place(end, parent, whole);
        else place(end, this.group(parent, `${container.id}scope ${whole}`, name, "scope", { path: whole }), whole);
      }
    };
    // What all begin with tells none from another.
    let from = root, path = "";
    while (!from.items.length && from.subs.size === 1) { [from] = from.subs.values(); path += `${path && "/"}${from.name}`; }
    place(from, container, path);
  }

  // Too many in one place: in parts, in the order in which they run. Parts are the same at every step.
  byPart(container, bunch = Math.ceil(this.run.regions.length / MOST_PARTS)) {
    if (container.children.length <= MOST_CHILDREN) return;
    const { run } = this, first = (node) => (node.kind === "kernel" ? run.regionOfBox(node.box) ?? 0 : node.children.length ? first(node.children[0]) : 0);
    const parts = new Map();
    for (const child of container.children) {
      const n = Math.floor(first(child) / bunch);
      if (!parts.has(n)) parts.set(n, []);
      parts.get(n).push(child);
    }
    if (parts.size === 1 && bunch > 1) return this.byPart(container, Math.ceil(bunch / MOST_PARTS));
    if (parts.size === 1) return;
    container.children = [];
    for (const [n, children] of [...parts].sort((a, b) => a[0] - b[0])) {
      const from = n * bunch, to = Math.min(from + bunch, run.regions.length);
      if (children.length === 1) { this.add(container, children[0]); continue; }
      const ends = [children[0], children.at(-1)], words = regionText(run, from), number = bunch === 1 ? from + 1 : `${from + 1}–${to}`;
      const label = ends.every((child) => child.kind === "scope") ? `${ends[0].label} … ${ends[1].label}` : `${number}${words && ` · ${words}`}`;
      const part = this.group(container, `${container.id}part ${bunch} ${n}`, label, "part");
      children.forEach((child) => this.add(part, child));
      if (bunch > 1) this.byPart(part, Math.ceil(bunch / MOST_PARTS));
    }
  }

  // What a container comes to, and in which order it holds things.
  sum(node) {
    const { run, state } = this;
    if (node.kind === "kernel") {
      const kernel = kernelOf(run, node.box, state.at), figures = figuresAt(run, state, node.box);
      node.kernels = 1;
      node.us = totalUs(figures);
      node.floor = Boolean(figures?.floor);
      node.bytes = (figures?.bytes ?? 0) * (figures?.iterations ?? 1);
      node.final = kernel ? [kernel] : [];
      return;
    }
    Object.assign(node, { kernels: 0, us: 0, bytes: 0, floor: false, final: [] });
    for (const child of node.children) {
      this.sum(child);
      node.kernels += child.kernels;
      node.us += child.us;
      node.bytes += child.bytes;
      node.floor ||= child.floor;
      node.order = Math.min(node.order, child.order);
      for (const kernel of child.final) node.final.push(kernel);
    }
    node.children.sort((a, b) => a.order - b.order);
    node.times = node.final.reduce((least, k) => (k.iterations ? Math.min(least, k.iterations) : least), Infinity);
    // A scope that only a loop runs is drawn as that loop.
    for (const child of node.children) if (child.kind === "scope" && child.times < Infinity) child.trips = ratioText(child.times, node.times);
  }

  // A loop's operation is the container of its kernels.
  standFor() {
    const { run, state } = this;
    for (const op of Object.keys(run.ops.calls).map(Number)) {
      const path = loopScope(run, op).join("/"), node = this.view === "scope" ? [...this.nodes.values()].find((n) => n.path === path && path) : this.nodes.get(`loop ${op}`);
      if (state.alive[op] && node && !this.leafOf.has(op)) this.leafOf.set(op, node);
    }
    if (this.view !== "computation") return;
    for (const [op, called] of Object.entries(run.ops.calls)) for (const c of called) {
      const from = this.nodes.get(`computation ${run.ops.computation[op]}`), to = this.nodes.get(`computation ${c}`);
      if (from && to) (this.calls ??= []).push([from, to]);
    }
  }

  // What is open: as one said, else loops and whole levels of folds, as long as that is not too much to look at.
  open(opened) {
    let shown = 0, level = [];
    const enter = (node) => {
      node.opened = true;
      shown += node.children.length - 1;
      for (const child of node.children) {
        const isOpened = opened.get(child.id);
        child.opened = isOpened === true && child.kind === "kernel" && this.state.members[child.box].length > 1;
        if (child.kind === "kernel") continue;
        if (isOpened) enter(child);
        else if (isOpened === undefined && child.kind !== "part") level.push(child);
      }
    };
    enter(this.root);
    const fits = (nodes) => nodes.length && shown + nodes.reduce((sum, node) => sum + node.children.length - 1, 0) <= OPEN_AT_FIRST[this.view];
    while (level.length) {
      const loops = level.filter((node) => node.caller !== undefined), next = fits(level) || level.length === 1 ? level : fits(loops) ? loops : [];
      if (!next.length) return;
      level = [];
      next.forEach(enter);
    }
  }

  // All that is around a box, for it to be seen.
  around(box) {
    const found = [];
    for (let node = this.leafOf.get(box)?.owner; node && node !== this.root; node = node.owner) found.push(node.id);
    return found;
  }

  // The node that is drawn for a box: itself, or the fold it is in.
  shownFor(box) {
    let node = this.leafOf.get(box), seen = node;
    if (!node) return undefined;
    for (; node && node !== this.root; node = node.owner) if (!node.opened) seen = node;
    return seen;
  }

  // What pairs of a member and what it reads lead to, seen through what is not drawn: views, tuples, constants.
  drawnInputs(pairs) {
    const { state, run } = this, found = [], stack = [], seen = this.seen ??= new Uint32Array(run.boxes), round = ++this.rounds;
    const add = (reads) => {
      for (const pair of reads) {
        const home = state.home[pair % run.ops.count];
        if (seen[home] !== round) { seen[home] = round; stack.push(home); }
      }
    };
    for (add(pairs); stack.length;) {
      const input = stack.pop();
      if (this.leafOf.has(input)) found.push(input);
      else add(state.reads[input]);
    }
    return found;
  }

  // Lines between what is drawn, each with the pairs of boxes it stands for.
  flows() {
    const { run, state } = this, { count } = run.ops, refused = refusedPairs(run, state.at), found = new Map();
    const numbers = new Map(), number = (node) => { if (!numbers.has(node)) numbers.set(node, numbers.size); return numbers.get(node); };
    const flow = (from, to, pair, decision) => {
      if (from === to) return;
      const key = number(from) * 1e6 + number(to);
      let line = found.get(key);
      if (!line) found.set(key, line = { from, to, pairs: [], decision: undefined });
      if (pair) line.pairs.push(pair);
      if (decision !== undefined && !from.label && !to.label) line.decision ??= decision;
    };
    const seen = [], shownFor = (box) => seen[box] ??= this.shownFor(box);
    for (const box of this.leafOf.keys()) {
      const to = shownFor(box);
      if (!to.ops) {
        for (const input of this.drawnInputs(state.reads[box])) {
          const from = shownFor(input);
          if (from !== to) flow(from, to, [input, box], refused.get(input * run.boxes + box));
        }
        continue;
      }
      // An open kernel: the operations themselves read.
      for (const pair of state.reads[box]) {
        const op = pair % count, end = to.ops.get(Math.floor(pair / count)), home = state.home[op];
        for (const input of this.drawnInputs([pair])) {
          const from = shownFor(input), start = (input === home && from.ops?.get(op)) || from;
          if (from !== to && end) flow(start, end, [input, box], refused.get(input * run.boxes + box));
        }
      }
      for (const [op, end] of to.ops) for (const o of new Set(run.ops.operands[op])) if (to.ops.has(o)) flow(to.ops.get(o), end);
    }
    for (const [from, to] of this.calls ?? []) if (!from.opened && !to.opened) flow(from, to);
    return [...found.values()];
  }
}
